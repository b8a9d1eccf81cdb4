const print = (letter) => process.stdout.write(letter + "\n");

setTimeout(() => print("T"), 0);
Promise.resolve()
  .then(() => print("P"))
  .then(() => process.nextTick(print, "N"))
  .then(() => print("Q"));
(async () => {
  print("A");
  await null;
  print("B");
})();
process.nextTick(print, "M");
print("S");
