"""All cases, in the order of the results."""

from __future__ import annotations

from suite.case import CellCase, ReplyCase
from suite.cases import isolation, process, replies, work

CASES: tuple[CellCase | ReplyCase, ...] = (*process.CASES, *work.CASES, *isolation.CASES, *replies.CASES)
