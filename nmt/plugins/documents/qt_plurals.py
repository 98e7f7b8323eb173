"""The numbers of plural forms that Qt's tools use (src/linguist/shared/numerus.cpp of qttools)."""

from nmt.text import language_tag

LANGUAGES = {
    1: "bi bo dz fa fj gn hu id ja jv ko ms my na om su th tr tt vi yo za zh",
    2: (
        "aa ab af am as ay az ba bg bn br ca co da de el en eo es et eu fi fil fo fr fur fy gl gu"
        " ha he hi hy ia ie is it ka kk kl km kn ks ku kw ky la lb lg ln lo mg ml mn mr nb ne nl nn"
        " no nso oc or pa ps pt qu rm rn rw sd si sn so sq ss st sv sw ta te tg ti tk tl tn to ts"
        " ug ur uz vo wa wo xh yi zu"
    ),
    3: "be bs cs dv ga gv hr ik iu lt lv mi mk pl ro ru sa se sh sk sm sr uk",
    4: "gd mt sl",
    5: "cy",
    6: "ar",
}
"""Number of forms -> languages."""


def number_of_forms(language: str) -> int:
    """The number of plural forms of a language; 1 if Qt does not know the language."""
    code = (language_tag(language) or language).replace("_", "-").partition("-")[0].lower()
    for number, codes in LANGUAGES.items():
        if code in codes.split():
            return number
    return 1
