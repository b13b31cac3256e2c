from .minilm import MiniLMLayer as MiniLMLayer
from .smollm import SmolLM as SmolLM
from .stored import load_lookup as load_lookup
from .stored import load_readings as load_readings
