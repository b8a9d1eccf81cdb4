class Cache {
  entries = {};

  get(key) {
    return this.entries[key];
  }

  set(key, value) {
    this.entries[key] = value;
  }

  has(key) {
    return key in this.entries;
  }
}

module.exports = { Cache };
