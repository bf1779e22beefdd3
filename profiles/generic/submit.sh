#!/bin/sh
# Start the job script "$1" on its own and print its process id.
nohup sh "$1" >"$1.out" 2>&1 &
echo $!
