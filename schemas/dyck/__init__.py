"""Tables of the Dyck study."""
