"""The places in the journal of what reaches a step from outside its run, besides the calls that it makes itself."""

from __future__ import annotations

HEARD = -1
"""What a person told the run."""
COUNTED = -2
"""How edits fitted in other runs."""
TAUGHT = -3
"""What other runs taught."""
ALIKE = -4
"""How like goals were reached before."""
AGAIN = -5
"""Which fixes are known of the last attempt's failure."""
FAILED = -6
"""What failed in other runs."""

OUTSIDE = {
    HEARD: "what was heard",
    COUNTED: "what was counted",
    TAUGHT: "what was taught",
    ALIKE: "what was alike",
    AGAIN: "what was recalled for the last failure",
    FAILED: "what had failed before",
}
