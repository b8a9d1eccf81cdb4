const fs = require("fs");

function readUsers(path, callback) {
  fs.readFile(path, "utf8", (error, text) => {
    if (error) return callback(error);
    try {
      callback(null, JSON.parse(text).users);
    } catch (failure) {
      callback(new Error(`${path}: ${failure.message}`));
    }
  });
}

function countAdmins(path, callback) {
  readUsers(path, (error, users) => {
    if (error) return callback(error);
    callback(null, users.filter((user) => user.admin).length);
  });
}

module.exports = { readUsers, countAdmins };
