"""How a view is kept: columns of the storage table, its identity, and the facade that shows the query's rows."""
