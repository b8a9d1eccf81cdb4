async function loadAll(names, load) {
  const texts = [];
  names.forEach(async (name) => {
    texts.push(await load(name));
  });
  return texts;
}

module.exports = { loadAll };
