"""`python -m pennyweight` is `pennyweight`."""

from pennyweight.cli import entry

if __name__ == "__main__":
    entry()
