"""One function for each step from a project file to a checked image; the drivers call nothing else.

    mlfbuild.yml -> [compile] -> kws.tar -> [unpack] -> build/mlf/<target>/kws/ -> [firmware] -> app.elf -> [verify]

``project`` loads and checks the project file and turns it into jobs; ``models`` compiles, packs and unpacks them;
``firmware`` drives the cross build; ``verify`` proves the numbers; ``build`` composes them all. Import the module you
need: a driver that only compiles a model must not pay for reading project files.
"""
