const { countAdmins } = require("./users.js");

countAdmins(process.argv[2], (error, count) => {
  console.log(error ? `failed: ${error.message}` : `${count} admins`);
});
