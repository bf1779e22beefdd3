"""x"""


def analyse(c): ...
