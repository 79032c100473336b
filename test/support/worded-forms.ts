import { BASE62, BASE64, HEX, type Pick, pickerOf, type PlantedSecret } from './planted-secrets.ts';

/**
 * Passwords of letters alone, and further forms of secrets. `%s` in a line is the place of the secret.
 */

/** Passwords without a digit, as people choose them: a word, words, names, with and without marks. */
const WORDED: readonly string[] = [
  'hummingbird',
  'KarlottaBaum',
  'walrus-noon',
  'correcthorsebattery',
  'Blue.Harbor!',
  'Sommerregen',
  'swordfish',
  'opensesame',
];

const PLACES: readonly (readonly [name: string, line: string])[] = [
  ['json', '{"user":"anna","password":"%s"}'],
  ['json with blanks', '{\n  "db_password": "%s",\n  "port": 5432\n}'],
  ['json in json', String.raw`{"body":"{\"password\":\"%s\"}"}`],
  ['prose', 'The password is %s.'],
  ['prose of a place', 'the password for staging is %s, and the user is anna'],
  ['prose with a colon', 'password for prod: %s'],
  ['prose in quotes', 'The admin password is "%s".'],
  ['jdbc', 'jdbc:postgresql://db:5432/app?user=anna&password=%s'],
  ['jdbc of sql server', 'jdbc:sqlserver://h:1433;databaseName=x;user=sa;password=%s;encrypt=true'],
  ['yaml', 'database:\n  host: db\n  password: %s\n  port: 5432\n'],
  ['yaml in quotes', "  password: '%s'"],
  ['environment', 'DB_PASSWORD=%s'],
  ['export', 'export PGPASSWORD="%s"'],
  ['environment of a secret', 'JWT_SECRET=%s'],
  ['constant of PHP', "define('DB_PASSWORD', '%s');"],
  ['curl', 'curl -u anna:%s https://api.example.com'],
  ['curl in quotes', 'curl -s --user "anna:%s" https://api.example.com'],
  ['flag with a sign', 'wget --http-password=%s https://x.example.com'],
  ['configuration of redis', 'requirepass %s'],
  ['sentence with quotes', 'Use the password "%s" for staging.'],
];

const key = (pick: Pick): string => `${pick(BASE62, 31)}7`;
const word = (pick: Pick): string => `hq${pick('abcdefghijkmnpqrstuvwxyz', 6)}`;

const FURTHER: readonly (readonly [name: string, line: string, make: (pick: Pick) => string])[] = [
  ['google refresh token', 'refresh: %s', (pick) => `1//0${pick(BASE62, 40)}-${pick(BASE62, 20)}`],
  ['render key', 'RENDER %s', (pick) => `rnd_${pick(BASE62, 28)}`],
  ['notion secret', 'notion %s', (pick) => `secret_${pick(BASE62, 43)}`],
  ['mongosh', 'mongosh "mongodb://h/app" -u anna -p %s', word],
  ['mongodump', 'mongodump --host h -u anna -p "%s"', word],
  ['openssl', 'openssl enc -aes-256-cbc -d -in a.enc -out a -k %s', word],
  ['a setter', 'client.setApiKey("%s");', key],
  ['a setter of a password', "config.set_password('%s')", word],
  ['a builder', 'Client.builder().withApiKey("%s").build()', key],
  ['password for a place', 'password for prod: %s', word],
  ['markdown table', '| user | password |\n|---|---|\n| anna | %s |', word],
  ['csv table', 'user,password,role\nanna,%s,admin\n', word],
  ['table of psql', ' id | user | password \n----+------+----------\n  1 | anna | %s\n', word],
  ['api_sig', 'https://api.flickr.com/rest?method=x&api_sig=%s', (pick) => pick(HEX, 32)],
  ['api_sig alone', 'api_sig=%s', (pick) => pick(HEX, 32)],
  ['api_sig in base64', '?user=a&api_sig=%s', (pick) => `${pick(BASE64, 26)}7Q`],
  ['api_sig in JSON', '"api_sig": "%s"', (pick) => pick(HEX, 32)],
  ['continued flag', 'deploy --user anna \\\n  --password \\\n  %s', (pick) => `${word(pick)}9`],
  ['continued mysql', 'mysql -u root \\\n  -p%s app', word],
  ['continued login', 'docker login -u anna \\\n    -p %s registry.example.com', word],
  ['continued header', 'curl -H \\\n  "X-Acme-Token: %s" https://example.com', key],
  ['keytool', 'keytool -list -keystore k.jks -storepass %s', word],
  ['gpg', 'gpg --batch --passphrase %s -d a.gpg', word],
  ['ssh-keygen', "ssh-keygen -t ed25519 -N '%s' -f id", word],
  ['remote desktop', 'xfreerdp /u:anna /p:%s /v:host', word],
];

export function plantWorded(): PlantedSecret[] {
  return PLACES.flatMap(([place, line]) =>
    WORDED.map((secret) => ({
      name: `${place}: ${secret}`,
      secret,
      line: line.replace('%s', () => secret),
    })),
  );
}

export function plantFurther(seed: number): PlantedSecret[] {
  const pick = pickerOf(seed);
  return FURTHER.map(([name, line, make]) => {
    const secret = make(pick);
    return { name, secret, line: line.replace('%s', () => secret) };
  });
}

/** Lines of code, settings and prose that name a password and hold none. */
export const WORDED_NEGATIVES: readonly string[] = [
  'The password is required.',
  'the password is wrong, so the login fails',
  'the password is hashed before it is stored',
  'The password is not stored anywhere.',
  'The password is missing',
  'my password is too short',
  'the password is empty by default',
  'the password is case-sensitive',
  'The new password is the same as before',
  'the password is never logged',
  'the password is visible in the process list',
  'the password is read from the environment',
  'If the password is correct, the session begins.',
  'the password is optional and the token is opaque',
  'password: string',
  '  password: string\n  email: string\n',
  'password: str',
  'password: Optional[str]',
  '  password: SecretStr\n  user: str\n',
  '  password: UserPassword\n',
  'password: required',
  'password: bcrypt',
  '  password: hashedPassword,\n  salt,\n',
  '  password: hashed\n}',
  'password: input.value,',
  'password: { type: String, required: true }',
  '"password": { "type": "string" }',
  '"password": "string"',
  '"password": "required|min:8"',
  '"password": "Password"',
  '"password": "Passwort"',
  '"password": "must not be empty"',
  '"passwordLabel": "Password"',
  "{ type: 'password', name: 'password' }",
  "'password' => 'required'",
  'password=password',
  'login(user, password=password)',
  'connect(host=host, password=secret)',
  'create_user(name, password=make_password(raw))',
  'password = getpass()',
  'password = prompt_for_password',
  'const password = generate();',
  'let password = userInput',
  'const { password } = request.body;',
  'user.password = hashed;',
  'password=$PASSWORD psql',
  'DB_PASSWORD=${DB_PASSWORD}',
  'DB_PASSWORD=<your password>',
  'DB_PASSWORD=changeme',
  'PASSWORD=none',
  'password policy: strict',
  'password for the database: see the vault',
  'password reset: enabled',
  'password hashing: argon',
  'forgot password: send an email',
  'setPassword(password)',
  "setApiKey('your-api-key')",
  "t('password.required')",
  "getToken('session')",
  "useState('password')",
  'setPassword("")',
  "expect(screen.getByLabelText('Password')).toBeVisible()",
  '| name | type | password |\n|---|---|---|\n| column | string | no |',
  'field,password\nrequired,yes\n',
  '| flag | what the password is for |\n|---|---|\n| -a | database |',
  'openssl x509 -in cert.pem -noout -text',
  'mongosh --port 27017 -p',
  'see http://example.com/a//1//0',
  'secret_name_of_the_cluster and secret_key_base',
  'rnd_seed = 7',
  'keytool -list -keystore k.jks -storepass $STOREPASS',
  'jdbc:postgresql://db:5432/app?user=anna&password=',
  'jdbc:postgresql://db/app?user=${user}&password=${password}',
  '`?user=${user}&password=` + encodeURIComponent(password)',
  'Passwords are stored as hashes.',
  'the secret is that it is simple',
  'JWT_SECRET=required',
  'password: !vault |',
  'password: !secret db_password',
  'SECRET_KEY=$(openssl rand -hex 32)',
  "define('DB_PASSWORD', getenv('DB_PASSWORD'));",
  'curl -u anna:$PASSWORD https://api.example.com',
  'curl -u "$NAME:$PASSWORD" https://api.example.com',
  'docker run -u www:data nginx',
  'psql --no-password=true',
  'mysqladmin --password=<new password>',
  'requirepass ${REDIS_PASSWORD}',
  'Use the password "changeme" only in tests.',
  'render with a password "field" in the form',
  'see https://example.com -a host:port',
];
