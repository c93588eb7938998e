"""What is kept: tables, the SQL store, the store in memory, migrations."""
