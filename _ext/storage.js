// Every use of the browser's storage can throw: where a reader blocks site data, where it is full, and
// in a frame of another site. What cannot be stored is kept while the page is open.
for (const name of ["localStorage", "sessionStorage"]) {
  const memory = new Map();
  const attempt = (use, otherwise) => {
    try {
      return use(real());
    } catch {
      return otherwise();
    }
  };
  let real = () => { throw 0; };
  try {
    const found = window[name];
    real = () => found;
  } catch { /* blocked: memory alone */ }
  Object.defineProperty(window, name, { configurable: true, value: {
    getItem: key => memory.get(`${key}`) ?? attempt(store => store.getItem(key), () => null),
    setItem: (key, value) => attempt(
      store => { store.setItem(key, value); memory.delete(`${key}`); },
      () => { memory.set(`${key}`, `${value}`); }),
    get lasts() { return !memory.size; }, // what is kept outlives the page
    removeItem: key => { memory.delete(`${key}`); attempt(store => store.removeItem(key), () => {}); },
  } });
}
