"""Files that contain models: ``.task``, other zips, ``.litertlm``; and addresses ``FILE#SECTION``.

Open first: ``opening.py`` for finding a model by its address; ``bundle.py`` for ``Bundle`` and
``Section``; ``zip_archive.py`` and ``litertlm.py`` for the formats; ``writing.py`` for replacing
one model in a bundle.
"""
