"""Customers of the shop."""

from string import Template
from textwrap import dedent

import pandas
from sqlalchemy import text

SORTABLE = {"name", "email", "city"}


def by_name(cursor, name):
    cursor.execute("SELECT * FROM customers WHERE name = '" + name + "'")
    return cursor.fetchall()


def by_email(cursor, email):
    query = "SELECT id FROM customers WHERE email = '%s'" % email
    cursor.execute(query)
    return cursor.fetchone()



def search(cursor, words):
    cursor.execute(
        f"SELECT * FROM customers WHERE name LIKE '%{words}%'"
    )
    return cursor.fetchall()


def among(cursor, names):
    listed = "', '".join(names)
    cursor.execute("SELECT * FROM customers WHERE name IN ('" + listed + "')")
    return cursor.fetchall()


def filtered(cursor, filters):
    query = "SELECT * FROM customers WHERE 1 = 1"
    for column, value in filters.items():
        query += " AND " + column + " = '" + value + "'"
    cursor.execute(query)
    return cursor.fetchall()


class Customers:
    base = "SELECT id, name FROM customers"

    def __init__(self, connection):
        self.connection = connection

    def where(self, condition):
        return self.connection.execute(self.base + " WHERE " + condition)

    def all(self):
        return self.connection.execute(self.base + " ORDER BY name")

    def page(self, number, size):
        start = int(number) * int(size)
        return self.connection.execute(f"{self.base} LIMIT {int(size)} OFFSET {start}")


def _matching(column, value):
    return f"SELECT * FROM customers WHERE {column} = '{value}'"


def lookup(cursor, column, value):
    cursor.execute(_matching(column, value))
    return cursor.fetchall()


def greeting(cursor, identifier):
    query = Template("SELECT name FROM customers WHERE id = $id")
    cursor.execute(query.substitute(id=identifier))
    return cursor.fetchone()


def report(session, city):
    query = dedent(
        f"""
        SELECT city, count(*)
        FROM customers
        WHERE city = '{city}'
        GROUP BY city
        """
    )
    return session.execute(text(query)).all()


def frame(connection, since):
    return pandas.read_sql("SELECT * FROM customers WHERE signed_up > '" + since + "'", connection)


def by_identifier(cursor, identifier):
    cursor.execute("SELECT * FROM customers WHERE id = ?", (identifier,))
    return cursor.fetchone()



def by_identifiers(cursor, identifiers):
    marks = ", ".join("?" for _ in identifiers)
    cursor.execute(f"SELECT * FROM customers WHERE id IN ({marks})", list(identifiers))
    return cursor.fetchall()


def sorted_by(cursor, column):
    if column not in SORTABLE:
        raise ValueError(column)
    cursor.execute(f"SELECT * FROM customers ORDER BY {column}")
    return cursor.fetchall()



def narrowed(cursor, **wanted):
    clauses, values = [], []
    for column in ("name", "city"):
        if column in wanted:
            clauses.append(f"{column} = ?")
            values.append(wanted[column])
    cursor.execute("SELECT * FROM customers WHERE " + " AND ".join(clauses), values)
    return cursor.fetchall()
