"""From a State to words: greedy, beam search and sampling, one of each for all models."""

from negatoscope.decoding.beam import beam_search
from negatoscope.decoding.sample import sample
from negatoscope.decoding.settings import DecodeSettings, Written
from negatoscope.decoding.write import write

__all__ = ["DecodeSettings", "Written", "beam_search", "sample", "write"]
