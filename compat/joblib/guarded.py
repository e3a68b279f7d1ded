"""Who may do everything on a server that is not in dev mode."""

ADMIN = "admin@example.com"
PASSWORD = "the admin of these cases"
