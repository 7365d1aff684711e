"""The tables of the shop."""

SCHEMA = """
CREATE TABLE customers (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT NOT NULL UNIQUE,
    city TEXT,
    signed_up TEXT
);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    customer_id INTEGER REFERENCES customers (id),
    placed_at TEXT,
    status TEXT,
    amount REAL
);
CREATE TABLE products (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    price REAL,
    stock INTEGER,
    form TEXT
);
"""


def create(connection):
    connection.executescript(SCHEMA)
