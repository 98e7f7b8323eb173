from .finding import FLAGS as FLAGS
from .finding import count_flags as count_flags
from .finding import flags as flags
from .placeholders import is_placeholder_wrong as is_placeholder_wrong
