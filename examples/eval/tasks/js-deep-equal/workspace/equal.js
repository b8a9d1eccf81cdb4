function equal(a, b) {
  if (typeof a !== "object") return a === b;
  for (const key of Object.keys(a)) {
    if (!equal(a[key], b[key])) return false;
  }
  return true;
}

module.exports = { equal };
