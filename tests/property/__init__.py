"""Random schemas, views and histories; every planned statement is executed on DuckDB and compared with the query."""
