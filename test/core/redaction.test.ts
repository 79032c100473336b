import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  MASKED_CHARS_MAX,
  MASKED_NAMES_MAX,
  maskSecrets,
  stripPrivate,
} from '../../src/core/redaction/redaction.ts';
import { plantForms } from '../support/planted-forms.ts';
import { makeKeyLines, plantSecrets } from '../support/planted-secrets.ts';
import { BLIND_FORMS, BLIND_NEGATIVES } from '../support/blind-secret-forms.ts';
import { MATRIX_NEGATIVES, plantMatrix } from '../support/secret-matrix.ts';
import { UNSEEN_FORMS, UNSEEN_NEGATIVES, UNSEEN_SECRETS } from '../support/unseen-forms.ts';
import { plantFurther, plantWorded, WORDED_NEGATIVES } from '../support/worded-forms.ts';

const BEGIN = ['-----BEGIN', 'RSA PRIVATE KEY-----'].join(' ');
const END = ['-----END', 'RSA PRIVATE KEY-----'].join(' ');

/** What agents read all day. None of it is a secret. */
const ORDINARY_LINES = [
  'commit 3f2c1e0b9a8d7c6b5a4f3e2d1c0b9a8f7e6d5c4b',
  'index 83db48f..bf2a1c9 100644',
  'request 550e8400-e29b-41d4-a716-446655440000 took 12 ms',
  '"integrity": "sha512-9nZ2r3eVPnrCeJzZ5xQF4mP2Yc8vT1sK6bN0wL7gH3jD5fA9qR8uE2iO4pX6yM1zC7kV3tB5nJ8hG0dS2lW4aQ=="',
  'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'The price is $1,299.00 (EUR 1.199,99), invoice 2024-118833.',
  'interface Login { password: string; token?: string; secret: Buffer; apiKey: string | undefined }',
  'const token = getToken();',
  'const token = await this.tokens.next(request.headers);',
  'const password = process.env.DB_PASSWORD ?? prompt();',
  'password = args.password1',
  'let secret = sha256(base64Url(input));',
  'function check(token: Uint8Array, password: string): boolean {',
  'if (token === undefined || secret.length < 32) throw new Error("no token");',
  'api_key = os.environ["ACME_API_KEY"]',
  'API_KEY=${ACME_API_KEY}',
  'API_KEY=$ACME_API_KEY',
  'ANTHROPIC_API_KEY=your-key-here-1234567890',
  'password: "<your password>"',
  'password: "Enter your new password 2 times"',
  'secret: {{ .Values.auth.secret1 }}',
  '"tokens": { "input_tokens": 128412, "cache_read_input_tokens": 99231 }',
  'max_tokens=4096 token_count: 1234567890123456',
  'recalledTokensMax: 512, tokenBudget: 8192,',
  'postgres://user:password@localhost:5432/db',
  'redis://localhost:6379/0 and https://example.com:8443/a/b@c',
  'git clone git@github.com:acme/widgets.git',
  'const login = { user, password: password2, token: token1 };',
  'password: Uint8Array; passphrase: string; pwd: Sha256Digest',
  '<input type="password" name="password1"><label>Password</label>',
  'The token type: Bearer2Token, secret name: my-secret-2',
  'password policy: at least 12 characters, password reset: see docs/reset2.md',
  'PWD=/home/anna/projects/app2/src',
  '<div class="sk-circle sk-circle-fade-dot-12 sk-folding-cube">',
  'npm_config_registry npm_lifecycle_event hf_transfer_enabled_by_default',
  'use Bearer authentication, or a bearer token, in the Authorization: Bearer <token> header',
  'The password is required. The token is invalid. The secret is base64 encoded.',
  'the password is hashed with argon2id or pbkdf2, the token is sha256 of it',
  '-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu1SU1LfVLPHCozMxH2Mo\n-----END PUBLIC KEY-----',
  'a file that starts with "-----BEGIN PRIVATE KEY-----" is a key; put it outside of the folder',
  'eyJ is how a JSON object begins in base64',
  '12345678:3f2c1e0b9a8d7c6b5a4f3e2d1c0b9a8f7e6d5c4b line of a log',
  'import { createHash, timingSafeEqual } from "node:crypto";',
  '   42→  const secret = createSecretKey(randomBytes(32));',
  'const keyPattern = /sk-[A-Za-z0-9]{20,}/;',
  'expect(headers["authorization"]).toBe(`Bearer ${localToken}`);',
  'task-1234567890abcdefghij risk-assessment-2024-q3-final-version-2',
  'see https://docs.example.com/en/api/secret-manager#token=rotation',
  'hook=session-end agent=a session_id=28c304f6-3c5f-4539-af1d-07ae450e639d model=b',
  '- **Always-pass tests** and the two-pass strategy:** run before it',
  'src/app/writer.ts:129:.header-left{display:flex;align-items:baseline;gap:12px}',
  'src/app/writer.ts:5432:a:b:c4d5e6',
  'MantleAPI_version=9a038989604e8da62ecddbe2094b16ce1b778be1',
  'publicKey = "9Wnzj4p4WGeKLs1Pt8QuKUpRKfFLfRYC9AIKjbJTWix"',
  'csrf_token: Mj2qykJO5rELyHgezQ69nzUX0i3OH67V7',
  'github_token = "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"',
  'aws_access_key_id = AKIAIOSFODNN7EXAMPLE',
  '"kms_key_id": "555ea4a3-d53a-4412-9c66-3a7cb667b0d6", secretName: app-secret-2, tokenId: x81jj2k3',
  'curl -u "$USER:$PASSWORD" https://example.com; curl -u user:pass https://example.com',
  'mysql -u root -p$MYSQL_PASSWORD app; mysqldump -h db -p',
  'docker run -p 8080:80 nginx; docker login -u anna --password-stdin',
  'Cookie: theme=dark; lang=en-GB; consent=yes; Path=/',
  'The cookie: it has a name=value form',
  'created_at=1700000000000, id: 4929123412341230, order 4111-22, phone 4155550123',
  'the PIN header has 2048 entries, Math.tan 1234, pin 1234 of the board',
  'the access code path returned 404; error code: 500123',
  'the seed phrase is what the user writes down and then it has to be kept in a safe place',
  'mnemonic: add the two registers then store them',
  'the recovery codes: they are shown once',
  '$2 and $10, $6$ each; ${HOME}/x, $1$2',
  'kind: Secret is mentioned, data: none',
  'a%20b%2Fc?page=2&next_token=abc&sort=asc',
  'C:\\new\\table\\Users\\anna\\token.txt',
  String.raw`const pattern = /\d+\.\d+/; printf("%d%s\n", token, secret);`,
  'const [token, setToken] = useState<string | null>(null);',
  'password: z.string().min(8), token: z.string().optional(), secret: Joi.string().required()',
  'password=password&token=token, user:pass@host, auth: true, auth: bearer, auth = "none"',
  'secretKeyRef:\n  name: db-credentials-2\n  key: password1',
  'PASS: TestParseHeader2 (0.01s), ok: 12 passed, 3 failed',
  'password = get_password(user1)',
  'ENV NODE_ENV=production PORT=8080 TOKEN_TTL=3600s',
  'Authorization: Bearer authentication is described in RFC 6750',
  'see organizations/550e8400-e29b-41d4-a716-446655440000/projects/7',
  '5f4dcc3b5aa765d61d8327deb882cf99 and b1946ac92492d2347c6235b4d2611184  hello.txt',
  'go.sum h1:9nZ2r3eVPnrCeJzZ5xQF4mP2Yc8vT1sK6bN0wL7gH3j=',
  'window.btoa("YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY3ODkw")',
];

test.each(ORDINARY_LINES)('ordinary text stays as it is: %s', (line) => {
  expect(maskSecrets(line)).toEqual({ text: line, masked: 0 });
});

test.each(plantSecrets(11))('R26, T15: a planted secret is masked: $name', ({ secret, line }) => {
  const { text, masked } = maskSecrets(line);
  expect(text).not.toContain(secret);
  expect(text).toMatch(/\[masked: [a-z-]+\]/);
  expect(masked).toBe(1);
});

test.each(plantForms(5))(
  'R41: a secret in one of its forms is masked: $name',
  ({ secret, line }) => {
    const { text, masked } = maskSecrets(line);
    expect(text).not.toContain(secret);
    expect(masked).toBeGreaterThan(0);
  },
);

test.each(Array.from({ length: 40 }, (_, at) => at + 1))(
  'R41: no form stays readable, whatever the secret: seed %i',
  (seed) => {
    const readable = plantForms(seed).filter(({ secret, line }) =>
      maskSecrets(line).text.includes(secret),
    );
    expect(readable.map(({ line }) => line)).toEqual([]);
  },
);

/** At most three in a hundred may stay readable. */
const READABLE_SHARE_MAX = 0.03;

test('R41: passwords without a digit are masked where data, settings and sentences hold them', () => {
  const all = plantWorded();
  const readable = all.filter(({ secret, line }) => maskSecrets(line).text.includes(secret));
  expect(readable.map(({ line }) => line).slice(all.length * READABLE_SHARE_MAX)).toEqual([]);
});

test.each(Array.from({ length: 20 }, (_, at) => at + 1))(
  'R41: no further form stays readable, whatever the secret: seed %i',
  (seed) => {
    const readable = plantFurther(seed).filter(({ secret, line }) =>
      maskSecrets(line).text.includes(secret),
    );
    expect(readable.map(({ line }) => line)).toEqual([]);
  },
);

test.each(WORDED_NEGATIVES)('a line that names a password and holds none stays: %s', (line) => {
  expect(maskSecrets(line)).toEqual({ text: line, masked: 0 });
});

test.each(UNSEEN_FORMS)(
  'R41: a form that once leaked is masked, whatever the secret: %s',
  (form) => {
    const lines = UNSEEN_SECRETS.map((secret) => form.replace('%s', () => secret));
    const readable = lines.filter((line, at) =>
      maskSecrets(line).text.includes(UNSEEN_SECRETS[at] ?? ''),
    );
    expect(readable).toEqual([]);
  },
);

test.each(UNSEEN_NEGATIVES)(
  'a line that looks like such a form and holds no secret stays: %s',
  (line) => {
    expect(maskSecrets(line)).toEqual({ text: line, masked: 0 });
  },
);

test.each(BLIND_FORMS.flatMap(({ forms, values }) => forms.map((form) => ({ form, values }))))(
  'R41: a form that was written blind is masked, whatever the secret: $form',
  ({ form, values }) => {
    const readable = values.filter((value) => {
      const { text } = maskSecrets(form.replaceAll('%s', () => value));
      return piecesOf(value).some((piece) => text.includes(piece) && !form.includes(piece));
    });
    expect(readable).toEqual([]);
  },
);

/** Lists all pieces of five characters: a mask that leaves one hides nothing. */
function piecesOf(value: string): readonly string[] {
  return Array.from({ length: Math.max(1, value.length - 4) }, (_, at) => value.slice(at, at + 5));
}

/** Keys of vendors in the forms of 2026: `B` and a number are so many characters of base62, `H` of hexadecimal digits. */
const KEYS_OF_2026 = [
  'here is the new one cfut_B40H8 please use it',
  'wrangler wants cfat_B40H8',
  'publish with hex_H40',
  'composer uses packagist_out_H68',
  'paddle: pdl_live_apikey_B26_B22_B3',
  'asaas $aact_prod_000B100',
  'use sktsec_B44_api',
  'try csk-H48',
  'together tgp_v1_B43',
  'index with pcsk_B6_B63',
  'sandbox e2b_H40 and dtn_H64',
  'browserbase bb_live_B27',
  'hny hcaik_01H56',
  'ph phx_B43',
  'statsig secret-B43',
  'stytch secret-live-B36',
  'unkey unkey_B24',
  'inngest signkey-prod-H64',
  'trigger tr_prod_B20',
  'cursor key_H64',
  'polar polar_oat_B43',
  'apify apify_api_B36',
  'azdo B76AZDOB4',
  'gemini AQ.Ab8RN6B44',
  'square EAAAB60',
  'AKIAIOSFODNN7QRSTUVW / B40',
  'Here is the API key:\n\nB36\n\nuse it for staging',
  'API key:\n```\nB36\n```',
  '**Token:**\n- B36',
  'H40 is the token for the staging API',
  '`B36` is my api key',
  'Tr0ub4dor&3 is the password for the jump host',
];
const BASE62 = 'q7RtA2VxeL9mK4pZw8Ny3BcD1fGh6JsU5bXoT0vIgQaMdErSzYiWkCuHlOjPnF';
const HEX = '3f9a1c7e05b8d2464ea0f17b9c32d58e61a7';

test.each(KEYS_OF_2026)(
  'a key is masked by its own form, or by the words around it: %s',
  (form) => {
    const values: string[] = [];
    const drawn = (chars: string, count: number) => {
      const from = values.length * 7;
      values.push(
        Array.from({ length: count }, (_, at) => chars[(from + at) % chars.length]).join(''),
      );
      return values.at(-1) ?? '';
    };
    const line = form.replaceAll(/(?<![a-z])([BH])(\d+)/g, (_, kind: string, count: string) =>
      drawn(kind === 'B' ? BASE62 : HEX, Number(count)),
    );
    const { text } = maskSecrets(line);
    const long = [...values.filter((value) => value.length >= 20), 'Tr0ub4dor'];
    expect(long.filter((value) => text.includes(value))).toEqual([]);
  },
);

test.each([
  'see msg_01q7RtA2VxeL9mK4pZw8Ny3BcD, toolu_01q7RtA2VxeL9mK4pZw8Ny3B and req_q7RtA2VxeL9mK4pZw8Ny',
  'task_q7RtA2VxeL9mK4pZw8Ny3BcD and disk-3f9a1c7e05b8d2464ea0f17b9c32d58e61a7 failed',
  'test_api_returns_the_newest_rows_of_page_2 and get_api_user_profile_by_id_v2',
  'cache-key-3f9a1c7e05b8d2464ea0f17b9c32d58e61a73f9a',
  'registry.example.com/app:prod-3f9a1c7e05b8d2464ea0f17b9c32d58e61a73f9a',
  'Keys:\n  first\nThe tokens:\n- expire after an hour',
  '3f9a1c7e05b8d2464ea0f17b9c32d58e61a73f9a is the commit that mends the token check',
  'argon2id is the password hash, and OAuth2.1 is the token service',
])('an identifier in the form of a key stays: %s', (line) => {
  expect(maskSecrets(line)).toEqual({ text: line, masked: 0 });
});

test.each(BLIND_NEGATIVES)('a line of the blind tables that holds no secret stays: %s', (line) => {
  expect(maskSecrets(line)).toEqual({ text: line, masked: 0 });
});

test.each(['PIN: 4711-8822', 'my PIN is 88 23 91'])(
  'R41: a code in groups is masked: %s',
  (line) => {
    expect(maskSecrets(line).text).toMatch(/ \[masked: one-time-code\]$/);
  },
);

test('R41: every form with every value that fits is masked, but for three in a hundred', () => {
  const all = plantMatrix(3, 0.2);
  const readable = all.filter(({ secret, line }) => maskSecrets(line).text.includes(secret));
  expect(readable.map(({ line }) => line).slice(all.length * READABLE_SHARE_MAX)).toEqual([]);
});

test('R41: every form that docs/privacy.md lists is masked, with a word, a number and a key', () => {
  const page = readFileSync(new URL('../../docs/privacy.md', import.meta.url), 'utf8');
  const block = /`SECRET` is what it masks[^`]*```text\n(?<lines>[^`]*)```/.exec(page);
  const forms = (block?.groups?.['lines'] ?? '').replace(
    'JWT_SECRET\n  value',
    'JWT_SECRET\v  value',
  );
  const lines = forms.trimEnd().split('\n');
  expect(lines.length).toBeGreaterThan(18);
  for (const form of lines) {
    for (const secret of ['hummingbird', 'walrus-noon', 'hq7tr2xw', 'aB3xK9mQ2vL7pR4tZ8wN']) {
      const line = form.replace('\v', '\n').replace(/SECRET(?!\n)/, secret);
      expect(maskSecrets(line).text).not.toContain(secret);
    }
  }
});

test.each(MATRIX_NEGATIVES)('a line that names a secret and holds none stays: %s', (line) => {
  for (const text of [line, `- ${line}\n`, `before\n${line}\nafter\n`, `  ${line}`]) {
    expect(maskSecrets(text)).toEqual({ text, masked: 0 });
  }
});

test('what stands around a secret stays', () => {
  const { text } = maskSecrets(`Authorization: Bearer ${'aB3'.repeat(10)} and then`);
  expect(text).toBe('Authorization: Bearer [masked: authorization] and then');
});

test.each([
  ['password: |\n  Wolkenbruch-am-See\nport: 5432', 'Wolkenbruch-am-See'],
  ['db:\n  passphrase: >-\n    Strandgut-Nord\n  x: 1', 'Strandgut-Nord'],
  ["secret_key = '''\nkq83hfLLs02mvQz7\n'''", 'kq83hfLLs02mvQz7'],
  ['password = """\r\nkelp-Forest9"""', 'kelp-Forest9'],
  ['$ set -x PGPASSWORD harbourlight; psql -h db', 'harbourlight'],
  ['% setenv DB_PASSWORD mooringline', 'mooringline'],
  ['Das Passwort ist Vergissmeinnicht, bitte nimm das.', 'Vergissmeinnicht'],
])(
  'R41: a value on the next line, behind a prompt or in a sentence is masked: %j',
  (text, secret) => {
    expect(maskSecrets(text).text).not.toContain(secret);
  },
);

test.each([
  'password: |\n  The password of the user, at least 12 characters.\n',
  'password: >\n  required\n',
  'token = """\n    Return the token of the session.\n    """',
  '$ set -euo pipefail',
  'Mein Passwort ist abgelaufen.',
  'Dein Passwort ist zugeschickt.',
  'Das Passwort ist verschlüsselt.',
  'Mijn wachtwoord is verlopen.',
  'Het wachtwoord is veranderd.',
])('a text on the next line, or what became of a password, stays: %j', (text) => {
  expect(maskSecrets(text).text).toBe(text);
});

test('R26: a private key block is masked as a whole', () => {
  const lines = makeKeyLines(3, 20);
  const { text, masked } = maskSecrets(`before\n${BEGIN}\n${lines.join('\n')}\n${END}\nafter`);
  expect({ text, masked }).toEqual({ text: 'before\n[masked: private-key]\nafter', masked: 1 });
});

test('R26: a private key block that was cut off is masked to where the text ends', () => {
  const lines = makeKeyLines(4, 9);
  expect(maskSecrets(`${BEGIN}\n${lines.join('\n')}`).text).toBe('[masked: private-key]');
});

test('R26: a cut-off key does not take the text behind it along', () => {
  const cutOff = `${BEGIN}\n${makeKeyLines(4, 9).join('\n')}\n... (truncated)\nNow run the tests again.`;
  const { text } = maskSecrets(cutOff);
  expect(text).toBe('[masked: private-key]\n... (truncated)\nNow run the tests again.');
});

test.each([
  ['line numbers', (line: string, at: number) => `${String(at).padStart(6)}→${line}\n`],
  ['diff marks', (line: string) => `+${line}\r\n`],
  ['escaped line ends', (line: string) => String.raw`${line}\n`],
  ['a source literal', (line: string) => `  "${line}" +\n`],
])('R26: a private key with %s is found', (_, decorate) => {
  const keyLines = makeKeyLines(5, 14);
  const block = [BEGIN, ...keyLines, END].map((line, at) => decorate(line, at)).join('');
  const { text } = maskSecrets(block);
  for (const line of keyLines) expect(text).not.toContain(line);
});

test('R26: an encrypted private key with its headers is found', () => {
  const lines = makeKeyLines(6, 12);
  const headers = `Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,${'0A1B2C3D'.repeat(4)}\n`;
  const { text } = maskSecrets(`${BEGIN}\n${headers}\n${lines.join('\n')}\n${END}`);
  expect(text).toBe('[masked: private-key]');
});

test('R26: the secret that follows an AWS key id is masked with it', () => {
  const [id, secret] = ['aws key id', 'aws secret key'].map(
    (name) => plantSecrets(7).find((it) => it.name === name)?.secret ?? '',
  );
  const { text } = maskSecrets(`anna,${id},${secret}\n`);
  expect(text).toBe('anna,[masked: aws-key-id],[masked: aws-secret-key]\n');
});

test.each([
  "const apiKey: string = 'mD5LByLvyhwLPos9MWtSCzE7';",
  '{"api_key": "xxX5Yl8fo4Sr9jEDqTnWiJ47", "n": 1}',
  '{"host":"db","password":"uTf7mMWDJvmzJBLjSjc5px27","port":5432}',
  '  client_secret: aES3GgqzMd4Zwxl8j1uTZgB7',
  '  client_secret: HQFoZGGWlxmSKJRKANgzmlw7',
])('R26: a random value that begins like a word, or has few digits, is masked: %s', (line) => {
  expect(maskSecrets(line).masked).toBe(1);
});

test.each([
  'password: sha256WithRSAEncryption',
  'auth_token: your_api_token_here',
  '"secret": "xxxxxxxxxxxxxxxxxxxxxxxx"',
  'token: base64-encoded-string',
])('what stands for a secret, or names how it is made, stays: %s', (line) => {
  expect(maskSecrets(line).masked).toBe(0);
});

test('a text over the limit is one mask, and one at the limit is read', () => {
  expect(maskSecrets('a'.repeat(MASKED_CHARS_MAX + 1)).text).toBe('[masked: oversized-text]');
  expect(maskSecrets('a'.repeat(MASKED_CHARS_MAX)).masked).toBe(0);
});

// Each text makes some rule try as often and as far as it can. None has a time of its own to meet:
// anything that is worse than linear would take minutes, and the test's deadline ends it.
const HOSTILE_PARTS = [
  'password=',
  'password:"',
  'password is ',
  'token: string = ',
  'a_KEY=',
  'A_KEY_KEY_',
  'bearer ',
  'authorization: bearer ',
  '://',
  '://a:',
  'eyJ',
  'eyJaaaaaaaa.',
  'eyJ-',
  '-----BEGIN PRIVATE KEY-----',
  '-----BEGIN PRIVATE KEY-----\n-----END ',
  'sk-',
  'sk-ant-',
  'AKIA',
  'AccountKey=',
  'SG.',
  '1234567890:',
  'xoxb-',
  'MMMMMMMMMMMMMMMMMMMMMMMM.',
  'hooks.slack.com/services/',
  '[masked: ',
  ' -u a:',
  '|password|\n',
  'a,password\n',
  '|-|\n|password|\n|-|\n',
  'set_password("',
  'password: a\n',
  'password for ',
  ' user=a password=',
  ' password is ',
  'pass=',
  '[a]\npassword = ',
  'variable "password" {\n default = ',
  'password for a b c ',
  '<key>password</key>',
  '<password a="b" ',
  '<entry key="password" a="b">',
  'curl -b a="',
  'aws configure set ',
  'secret generic --from-literal=a=',
  ' -u a -p ',
  'BasicAuth(',
  'user a\npassword ',
  '${PASSWORD:-',
  ' and pass ',
  '(password . "',
  'password -> ',
  'user a, password ',
  'set the password to ',
  'credentials: a/',
  'password: "a b c d e ',
  'echo a|',
  'пароль',
  '\\\n',
  '\\\n ',
  'a',
  '=',
  '\\n',
  '\u{1F600}',
];

test.each([
  ['I use Kestrel77 as my password everywhere', 'I use [masked: secret] as my password everywhere'],
  [
    'unlock it with Kestrel77 as the passphrase',
    'unlock it with [masked: secret] as the passphrase',
  ],
  ['"marmalade9" is the password', '"[masked: secret]" is the password'],
])(
  'a value in front of its name is masked, and what stands around it stays: %s',
  (text, masked) => {
    expect(maskSecrets(text).text).toBe(masked);
  },
);

test('R26: a text with more names of secrets than are read becomes one mask', () => {
  const lines = (count: number): string =>
    Array.from({ length: count }, (_, at) => `key_${at} and password = hunter${at}x!`).join('\n');
  const { text, masked } = maskSecrets(lines(1_000));
  expect(masked).toBe(1_000);
  expect(text).not.toContain('hunter');
  expect(maskSecrets(lines(MASKED_NAMES_MAX + 1)).text).toBe('[masked: oversized-text]');
});

test.each(HOSTILE_PARTS)('R26: 1 MiB of %j ends', (part) => {
  const text = part.repeat(Math.floor(MASKED_CHARS_MAX / part.length));
  const { masked } = maskSecrets(text);
  expect(masked).toBeLessThan(text.length);
});

test.each([
  ['a <private>b</private> c', 'a   c'],
  ['<PRIVATE>x</private>', ' '],
  ['a <private>b <private>c</private> d</private> e', 'a   e'],
  ['a <private>never closed', 'a  '],
  ['a </private> b', 'a </private> b'],
  ['<pri<private>x</private>vate>y', '<pri vate>y'],
  ['nothing private', 'nothing private'],
])('private passages are taken out: %j', (text, kept) => {
  expect(stripPrivate(text)).toBe(kept);
});

test('private passages that open a million times are taken out', () => {
  expect(stripPrivate('<private>'.repeat(1 << 17))).toBe(' ');
});

test('R26: a random password that begins like a placeholder is masked, a placeholder is not', () => {
  expect(maskSecrets('password = "MY-IMiQBdNEY8y1bdJ9bYYm7"').masked).toBe(1);
  expect(maskSecrets('password = "my-password"').masked).toBe(0);
  expect(maskSecrets('api_key: your_api_key_here').masked).toBe(0);
});

test('a password of three characters is masked where nothing but a password can follow', () => {
  expect(maskSecrets('sshpass -p abc ssh anna@host').text).toBe(
    'sshpass -p [masked: password] ssh anna@host',
  );
});

test('a password behind an arrow is masked to its end, with every sign in it', () => {
  expect(maskSecrets('admin pw -> Tr0ub4dor&3').text).toBe('admin pw -> [masked: secret]');
});
