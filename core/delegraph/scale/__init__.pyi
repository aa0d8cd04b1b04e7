from .job import JobResult as JobResult
from .job import predict as predict
from .opening import open_source as open_source
from .predictor import Predictor as Predictor
from .sources import Source as Source
