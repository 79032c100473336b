import {
  BASE62,
  BASE64,
  DIGITS,
  HEX,
  LOWER,
  type Pick,
  pickerOf,
  type PlantedSecret,
} from './planted-secrets.ts';

/**
 * Forms in which secrets stand in files, commands, headers and notes: made from a seed, like all
 * planted secrets. `%s` in a line is the place of the secret.
 */

/** What a form hides: a random key, a password that a person chose, hexadecimal digits, base64. */
type Make = (pick: Pick) => string;

const key: Make = (pick) => `${pick(BASE62, 23)}7`;
const password: Make = (pick) => `hq${pick(LOWER, 4)}${pick('23456789', 1)}x`;
const hex: Make = (pick) => pick(HEX, 64);
const base64: Make = (pick) => `${pick(BASE64, 42)}w=`;
const login: Make = (pick) =>
  Buffer.from(`anna:${password(pick)}`)
    .toString('base64')
    .replace(/=+$/, '');
const uuid: Make = (pick) => [8, 4, 4, 4, 12].map((length) => pick(HEX, length)).join('-');
const code: Make = (pick) => `${pick('123456789', 1)}${pick(DIGITS, 5)}`;

const FILES: readonly Form[] = [
  ['docker config', '{"auths":{"https://index.docker.io/v1/":{"auth":"%s"}}}', login],
  ['npmrc _auth', '_auth=%s', login],
  ['npmrc token', '//registry.example.com/:_authToken=%s', uuid],
  ['kubeconfig key', '    client-key-data: %s', pemInBase64],
  ['kubeconfig token', 'users:\n- name: x\n  user:\n    token: %s', key],
  ['pgpass', 'db.internal:5432:app:anna:%s', password],
  ['pgpass with stars', '# mine\n*:*:*:anna:%s\n', password],
  ['netrc on lines', 'machine example.com\n  login anna\n  password %s', password],
  ['pypirc', '[pypi]\nusername = __token__\npassword = %s', password],
  ['maven settings', '<server><id>x</id><password>%s</password></server>', password],
  ['xml on three lines', '<acmeToken>\n    %s\n</acmeToken>', key],
  ['nuget config', '<add key="ClearTextPassword" value="%s" />', password],
  ['composer auth', '{"http-basic":{"x":{"username":"a","password":"%s"}}}', password],
  ['gradle properties', 'signing.password=%s', password],
  ['laravel', 'APP_KEY=base64:%s', base64],
  ['wordpress', "define('DB_PASSWORD', '%s');", password],
  ['ansible', 'ansible_become_pass: %s', password],
  ['terraform state', '"db_password": {\n  "value": "%s",\n  "type": "string"', password],
  ['kubernetes environment', '- name: DB_PASSWORD\n  value: %s', password],
  ['environment as json', '{"name":"DB_PASSWORD","value":"%s"}', password],
  ['kubernetes secret', 'apiVersion: v1\nkind: Secret\ntype: Opaque\ndata:\n  login: %s', login],
  ['yaml block', 'password: |\n  %s', password],
  ['folded yaml block', 'token: >-\n    %s', key],
  ['wireguard', 'PrivateKey = %s', base64],
  ['wifi', 'psk="%s"', password],
  ['shadow file', 'root:$6$rounds=5000$Xy12ab34$%s:19000:0:99999', (pick) => pick(BASE62, 86)],
  ['htpasswd file', 'anna:$apr1$Xy12ab34$%s', (pick) => pick(BASE62, 22)],
  ['ldap hash', 'anna:{SSHA}%s', (pick) => pick(BASE64, 40)],
  ['json web key', '{"kty":"RSA","n":"x","e":"AQAB","d":"%s"}', (pick) => pick(BASE62, 64)],
  [
    'putty key',
    'PuTTY-User-Key-File-3: ssh-ed25519\nPublic-Lines: 1\nAAAA\nPrivate-Lines: 1\n%s\nPrivate-MAC: 0123456789abcdef0123456789abcdef',
    base64,
  ],
  [
    'vpn key',
    '-----BEGIN OpenVPN Static key V1-----\n%s\n-----END OpenVPN Static key V1-----',
    hex,
  ],
  [
    'ssh2 key',
    '---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: "x"\n%s\n---- END SSH2 ENCRYPTED PRIVATE KEY ----',
    base64,
  ],
];

const COMMANDS: readonly Form[] = [
  ['mysql', 'mysql -u root -p%s app', password],
  ['sshpass', "sshpass -p '%s' ssh root@10.0.0.5", password],
  ['curl user in quotes', 'curl -u "anna:%s" https://example.com', password],
  ['curl without a user', 'curl -u ":%s" https://example.com', password],
  ['curl header', 'curl -H "X-Acme-Token: %s" https://example.com', password],
  ['curl cookie', "curl --cookie 'PHPSESSID=%s' https://example.com", key],
  ['flag with =', 'deploy --password=%s --host a', password],
  ['longer flag', 'app --db-password "%s"', password],
  ['docker login', 'docker login -u anna -p %s registry.example.com', password],
  ['docker environment', 'docker run -e POSTGRES_PASSWORD=%s pg', password],
  ['dockerfile', 'ENV API_TOKEN %s', key],
  ['password of letters', 'PGPASSWORD=%s psql', (pick) => `q${pick(LOWER, 11)}`],
  ['openssl', 'openssl rsa -passin pass:%s -in k', password],
  ['redis', 'redis-cli -h h -a %s ping', password],
  ['htpasswd', 'htpasswd -cb .htpasswd anna %s', password],
  ['sudo', 'echo %s | sudo -S ls', password],
  ['chpasswd', "echo 'root:%s' | chpasswd", password],
  ['ldap', 'ldapsearch -D cn=x -w %s -b dc', password],
  ['kubectl', 'kubectl create secret generic x --from-literal=password=%s', password],
  ['sql role', "ALTER USER anna WITH PASSWORD '%s';", password],
  ['sql grant', "CREATE USER 'a'@'%' IDENTIFIED BY '%s';", password],
  ['two arguments', "requests.get(u, auth=('anna', '%s'))", password],
];

const WIRE: readonly Form[] = [
  ['second cookie', 'Cookie: theme=dark; sid=%s; lang=en', key],
  ['third cookie', 'Cookie: a=1; b=2; auth_token=%s', key],
  ['digest', 'Authorization: Digest username="a", realm="r", uri="/", response="%s"', hex],
  [
    'signed request',
    'Authorization: AWS4-HMAC-SHA256 Credential=x/20240101/s3, SignedHeaders=host, Signature=%s',
    hex,
  ],
  ['no scheme', 'Authorization: %s', key],
  ['own scheme', '"Authorization": "GenieKey %s"', uuid],
  ['hawk', 'Authorization: Hawk id="x", ts="1", mac="%s"', base64],
  ['proxy', 'Proxy-Authorization: Basic %s', login],
  ['key header', 'x-goog-api-key: %s', key],
  ['subscription key', 'Ocp-Apim-Subscription-Key: %s', (pick) => pick(HEX, 32)],
  ['amazon url', 'https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature=%s', hex],
  ['google url', 'https://storage.googleapis.com/b/o?X-Goog-Signature=%s', hex],
  [
    'azure url',
    'https://a.blob.core.windows.net/c?sv=2022-11-02&sr=b&sig=%s%3D&se=2024',
    (pick) => pick(BASE62, 43),
  ],
  ['feishu webhook', 'https://open.feishu.cn/open-apis/bot/v2/hook/%s', uuid],
  ['sql server', 'Server=x;User Id=sa;Password=%s;Encrypt=true', password],
  ['oracle', 'jdbc:oracle:thin:scott/%s@h:1521:x', password],
  ['redis url', 'redis://:%s@r:6379', password],
  ['mail url', 'smtps://a%40b.example:%s@h:465', password],
  ['libpq', 'host=db user=a password=%s dbname=x', password],
  [
    'otp address',
    'otpauth://totp/x?secret=%s&issuer=x',
    (pick) => pick('ABCDEFGHIJKLMNOPQRSTUVWXYZ234567', 32),
  ],
];

const ESCAPED: readonly Form[] = [
  ['json twice in json', String.raw`"{\\\"password\\\":\\\"%s\\\"}"`, password],
  ['json four times', String.raw`{\\\\\\\"api_key\\\\\\\":\\\\\\\"%s\\\\\\\"}`, key],
  ['json with codes', String.raw`{\u0022password\u0022:\u0022%s\u0022}`, password],
  ['percent', 'to=https%3A%2F%2Fx%3Fapi_key%3D%s%26a', key],
  ['percent twice', 'x%253Fpassword%253D%s%2526', password],
  ['html', '&quot;password&quot;:&quot;%s&quot;', password],
];

const SPOKEN: readonly Form[] = [
  ['one-time code', 'OTP: %s', code],
  ['code in a sentence', 'Your verification code is %s.', code],
  ['code first', '%s is your Acme confirmation code', code],
  ['code in json', '{"otp":"%s"}', code],
  [
    'recovery codes',
    'Recovery codes:\n  1. %s\n',
    (pick) => `${pick(LOWER, 4)}${pick(DIGITS, 1)}-${pick(HEX, 4)}${pick(DIGITS, 1)}`,
  ],
  [
    'wallet',
    'seed phrase: %s',
    (pick) => Array.from({ length: 12 }, () => pick(LOWER, 6)).join(' '),
  ],
  ['card', 'card %s exp 12/30', card],
  ['card without blanks', '"number": "%s"', (pick) => card(pick).replaceAll(' ', '')],
  ['password in a sentence', 'my password is %s', password],
  ['password of letters in quotes', 'the password is "%s"', (pick) => `q${pick(LOWER, 17)}`],
];

/** Name, line, secret. */
type Form = readonly [name: string, line: string, make: Make];

export function plantForms(seed: number): PlantedSecret[] {
  const pick = pickerOf(seed);
  return [...FILES, ...COMMANDS, ...WIRE, ...ESCAPED, ...SPOKEN].map(([name, line, make]) => {
    const secret = make(pick);
    return { name, secret, line: line.replace('%s', () => secret) };
  });
}

function pemInBase64(pick: Pick): string {
  const begin = ['-----BEGIN', 'RSA PRIVATE KEY-----'].join(' ');
  return Buffer.from(`${begin}\n${pick(BASE64, 62)}\n`)
    .toString('base64')
    .replace(/=+$/, '');
}

/** A number of sixteen digits whose last one makes the sum of Luhn end in 0. */
function card(pick: Pick): string {
  const digits = `4${pick(DIGITS, 14)}`;
  const sum = digits.split('').reduce((total, digit, at) => {
    const weighted = at % 2 === 0 ? Number(digit) * 2 : Number(digit);
    return total + (weighted > 9 ? weighted - 9 : weighted);
  }, 0);
  return `${digits}${(10 - (sum % 10)) % 10}`.replaceAll(/(?<=^(?:\d{4}){1,3})(?=\d)/g, ' ');
}
