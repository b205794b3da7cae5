// Logs in over TLS, verifies the server, asks what it is encrypted with, and calls a procedure:
// client.js DRIVER PORT CA.
const fs = require('fs');
const [driver, port, ca] = process.argv.slice(2);
// Without an authority the server must prove with the password that the certificate is its own.
const ssl = ca === '-' ? { rejectUnauthorized: true } : { ca: fs.readFileSync(ca), rejectUnauthorized: true };
const options = { host: 'localhost', port: Number(port), user: 'driver', password: 'secret', ssl };

// Calls a procedure as text and as a prepared statement. A result set, then OK.
async function calls(query, execute) {
  const [rows] = await query('CALL test.answer(7, @b, @c)');
  const [out] = await query('SELECT @c AS c');
  const [bound] = await execute('CALL test.answer(?, @b, @c)', [8]);
  console.log(['called', rows[0][0].a, out[0].c, bound[0][0].a].join(' '));
  await query('CALL test.refuse()').catch((error) => console.log('refused', error.errno));
}

async function main() {
  const question = "SHOW SESSION STATUS LIKE 'Ssl_cipher'";
  if (driver === 'mysql2') {
    const connection = await require('mysql2/promise').createConnection(options);
    const [rows] = await connection.query(question);
    console.log('encrypted', rows[0].Value);
    if (ca !== '-') await calls((sql) => connection.query(sql), (sql, values) => connection.execute(sql, values));
    await connection.end();
  } else {
    const connection = await require('mariadb').createConnection(options);
    const rows = await connection.query(question);
    console.log('encrypted', rows[0].Value);
    if (ca !== '-') {
      await calls(
        async (sql) => [await connection.query(sql)],
        async (sql, values) => [await connection.execute(sql, values)],
      );
    }
    await connection.end();
  }
}

main().catch((error) => { console.error(error.message); process.exit(1); });
