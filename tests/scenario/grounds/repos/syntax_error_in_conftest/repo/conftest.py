import pytest

def broken(:
