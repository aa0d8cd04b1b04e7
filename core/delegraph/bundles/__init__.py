"""Files that hold models: ``.task`` and other zips, ``.litertlm``, and addresses ``FILE#SECTION``.

Open first: ``opening.py`` for how an address becomes a model's bytes; ``bundle.py`` for ``Bundle``
and ``Section``; ``zip_archive.py`` and ``litertlm.py`` for the formats; ``writing.py`` for
replacing one model in a bundle.
"""
