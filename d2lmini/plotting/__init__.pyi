from .heatmaps import show_heatmaps as show_heatmaps
from .shown import Shown as Shown
from .theme import COLORS as COLORS
from .theme import use_theme as use_theme
