from .command import Command as Command, Option as Option
from .explanations import explain_option as explain_option, nearest as nearest
from .foreign_words import our_words as our_words
from .groups import groups as groups
from .help import help_text as help_text
from .overrides import in_yaml as in_yaml, literal as literal, set_text as set_text
from .plain import compose as compose
from .sweeps import expand as expand
from .tree import compose_tree as compose_tree, to_yaml as to_yaml
from .words import exists as exists
