"""What costly cells were given: one that would be given the same again need not be run again.

Runs in the kernel of a chapter. What a cell does follows from its code, from the values of the
names that it reads, from the functions and classes of the notebook among them, and from random
numbers that it draws without a seed. All of that is hashed before it runs. Where anything has no
hash, or it draws such numbers, a cell counts as given something else.
"""

import hashlib
import marshal
import pickle
import random
import sys
import time
from types import CodeType, FunctionType, ModuleType

from live_cells.plan import bound_and_read

COSTLY = 1.0  # seconds of a processor


def drawn():
    """Return where the generators of random numbers stand that need no seed."""
    states = [random.getstate()]
    if numpy := sys.modules.get("numpy"):
        states.append(repr(numpy.random.get_state(legacy=False)))
    if torch := sys.modules.get("torch"):
        states.append(torch.get_rng_state().tolist())
    return states


class Given(pickle.Pickler):
    """Hash values, and of what the notebook has defined the code, with all that it reads."""

    def __init__(self, names, told, digest):
        super().__init__(self, protocol=5)
        self.names, self.told, self.digest = names, told, digest

    def write(self, data):
        self.digest.update(data)

    def add(self, value):
        """Add a value by itself: what is at work on one takes no other."""
        Given(self.names, self.told, self.digest).dump(value)

    def read(self, names):
        """Add the values of names."""
        for name in sorted({*names} & {*self.names} - self.told):
            self.told.add(name)
            value = self.names[name]
            self.write(name.encode())
            if isinstance(value, ModuleType):
                self.write(value.__name__.encode())
            else:
                self.add(value)

    def reducer_override(self, value):
        """Add what pickle leaves out: code, and a gradient."""
        if getattr(value, "__module__", None) == "__main__" and id(value) not in self.told:
            self.told.add(id(value))
            if isinstance(value, type):
                for base in value.__bases__:
                    self.reducer_override(base)
                for name, part in vars(value).items():
                    if not name.startswith(("__dict", "__weak", "__module", "__abc", "_abc")):
                        self.write(name.encode())
                        self.code_of(part)
            elif isinstance(value, FunctionType):
                self.code_of(value)
        torch = sys.modules.get("torch")
        if torch and isinstance(value, torch.Tensor) and value.is_leaf and value.grad is not None:
            self.write(value.grad.numpy().tobytes())
        return NotImplemented

    def code_of(self, value):
        """Add a function with all that it reads, or what else a class has."""
        value = getattr(value, "__func__", value)  # of a class method
        if not isinstance(value, FunctionType):
            return self.add(value)
        self.write(marshal.dumps(value.__code__))
        self.add((value.__defaults__, value.__kwdefaults__))
        self.add([cell.cell_contents for cell in value.__closure__ or ()])
        return self.read(names_in(value.__code__))


def names_in(code):
    inner = [names_in(one) for one in code.co_consts if isinstance(one, CodeType)]
    return {*code.co_names}.union(*inner)


class Watcher:
    """Of each cell that has run: a hash of what it was given, if it was costly."""

    def __init__(self, shell):
        self.shell, self.costly, self.cells = shell, COSTLY, {}
        shell.events.register("pre_run_cell", self.start)
        shell.events.register("post_run_cell", self.stop)

    def given(self, code):
        """Return a hash of what a cell would be given now; None if there is none."""
        if "train" not in code:  # nothing else in the book is costly enough to be asked
            return None
        digest, hidden = hashlib.sha256(), self.shell.user_ns_hidden  # IPython's own
        names = {n: v for n, v in self.shell.user_ns.items() if n[0] == "_" or n not in hidden}
        try:
            Given(names, set(), digest).read(bound_and_read(compile(code, "cell", "exec"))[1])
        except Exception:  # a magic; a value that cannot be pickled
            return None
        return digest.hexdigest()

    def start(self, info):
        self.now = info.raw_cell, self.given(info.raw_cell), drawn(), time.process_time()

    def stop(self, result):
        code, given, before, began = self.now
        if given and time.process_time() - began > self.costly and before == drawn():
            self.cells.setdefault(code, given)

    def unchanged(self, code):
        """Tell whether a costly cell would be given what it was given when it first ran."""
        return code in self.cells and self.cells[code] == self.given(code)
