"""The ground floor: settings, tables and sessions. It imports no other room."""
