"""The dialects, one module each with a `DIALECT`. A new module needs no registration."""
