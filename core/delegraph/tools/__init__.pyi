from .latency import Latency as Latency
from .setup import Setup as Setup
