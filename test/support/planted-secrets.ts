/**
 * Secrets that nobody owns: made from a seed, in the formats of their vendors. Nothing here may be
 * copied from a real key.
 */

export interface PlantedSecret {
  readonly name: string;
  /** The text that may not be found in what is stored. */
  readonly secret: string;
  /** A line as it stands in prompts and tool outputs, with the secret inside. */
  readonly line: string;
}

export const LOWER = 'abcdefghijklmnopqrstuvwxyz';
export const DIGITS = '0123456789';
export const HEX = `${DIGITS}abcdef`;
export const BASE62 = LOWER + LOWER.toUpperCase() + DIGITS;
export const BASE64 = `${BASE62}+/`;
const BASE64URL = `${BASE62}-_`;
const BASE32 = `${LOWER.toUpperCase()}234567`;

export type Pick = (alphabet: string, length: number) => string;

/** Small and even enough to make keys of; the same seed gives the same keys. */
export function pickerOf(seed: number): Pick {
  let state = seed >>> 0 || 1;
  const next = (): number => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 2 ** 32;
  };
  return (alphabet, length) =>
    Array.from({ length }, () => alphabet.charAt(Math.floor(next() * alphabet.length))).join('');
}

/** Formats that are known by themselves, wherever they stand. */
const FORMATS: Readonly<Record<string, (pick: Pick) => string>> = {
  'anthropic key': (pick) => `sk-ant-api03-${pick(BASE64URL, 93)}AA`,
  'anthropic oauth': (pick) => `sk-ant-oat01-${pick(BASE64URL, 95)}`,
  'openai project key': (pick) => `sk-proj-${pick(BASE64URL, 156)}`,
  'openai service key': (pick) => `sk-svcacct-${pick(BASE64URL, 120)}`,
  'openai old key': (pick) => `sk-${pick(BASE62, 48)}`,
  'openrouter key': (pick) => `sk-or-v1-${pick(HEX, 64)}`,
  'svc local token': (pick) => `svc_local_${pick(BASE64URL, 43)}`,
  'svc live key': (pick) => `svc_live_${pick(BASE64URL, 43)}`,
  'aws key id': (pick) => `AKIA${pick(BASE32, 16)}`,
  'google key': (pick) => `AIza${pick(BASE64URL, 35)}`,
  'github token': (pick) => `ghp_${pick(BASE62, 36)}`,
  'github oauth': (pick) => `gho_${pick(BASE62, 36)}`,
  'github server': (pick) => `ghs_${pick(BASE62, 36)}`,
  'github fine-grained': (pick) => `github_pat_${pick(BASE62, 22)}_${pick(BASE62, 59)}`,
  'gitlab token': (pick) => `glpat-${pick(BASE64URL, 20)}`,
  'slack bot token': (pick) => `xoxb-${pick(DIGITS, 12)}-${pick(DIGITS, 12)}-${pick(BASE62, 24)}`,
  'stripe key': (pick) => `sk_live_${pick(BASE62, 24)}`,
  'stripe restricted key': (pick) => `rk_live_${pick(BASE62, 99)}`,
  'hugging face token': (pick) => `hf_${pick(BASE62, 34)}`,
  'npm token': (pick) => `npm_${pick(BASE62, 36)}`,
  'pypi token': (pick) => `pypi-AgEIcHlwaS5vcmc${pick(BASE64URL, 160)}`,
  'sendgrid key': (pick) => `SG.${pick(BASE64URL, 22)}.${pick(BASE64URL, 43)}`,
  'twilio key': (pick) => `SK${pick(HEX, 32)}`,
  'digitalocean token': (pick) => `dop_v1_${pick(HEX, 64)}`,
  'telegram token': (pick) => `${pick('123456789', 10)}:AA${pick(BASE64URL, 33)}`,
  'discord token': (pick) => `M${pick(BASE62, 25)}.${pick(BASE64URL, 6)}.${pick(BASE64URL, 27)}`,
  'json web token': (pick) =>
    `eyJ${pick(BASE64URL, 33)}.eyJ${pick(BASE64URL, 120)}.${pick(BASE64URL, 43)}`,
};

/**
 * Values that only their place gives away: `line` puts the value there. They end in a digit, because
 * letters alone may, by chance, look like a name.
 */
const PLACES: Readonly<
  Record<string, { value: (pick: Pick) => string; line: (it: string) => string }>
> = {
  'aws secret key': {
    value: (pick) => pick(BASE64, 40),
    line: (it) => `aws_secret_access_key = ${it}`,
  },
  'aws secret in json': {
    value: (pick) => pick(BASE64, 40),
    line: (it) => `  "SecretAccessKey": "${it}",`,
  },
  'azure storage key': {
    value: (pick) => `${pick(BASE64, 86)}==`,
    line: (it) => `AccountName=acme;AccountKey=${it};EndpointSuffix=core.windows.net`,
  },
  'bearer header': {
    value: (pick) => pick(BASE62, 40),
    line: (it) => `curl -H 'Authorization: Bearer ${it}' https://api.example.com/v2/items`,
  },
  'basic header': {
    value: (pick) => `${pick(BASE64, 26)}==`,
    line: (it) => `"authorization": "Basic ${it}"`,
  },
  'password in a url': {
    value: (pick) => `${pick(BASE62, 17)}7`,
    line: (it) => `DATABASE_URL=postgresql://app_user:${it}@db.internal:5432/app?sslmode=require`,
  },
  'slack webhook': {
    value: (pick) => pick(BASE62, 24),
    line: (it) => `POST https://hooks.slack.com/services/T01ABCDEF/B02ABCDEF/${it}`,
  },
  'discord webhook': {
    value: (pick) => pick(BASE64URL, 68),
    line: (it) => `https://discord.com/api/webhooks/112233445566778899/${it}`,
  },
  'environment file': {
    value: (pick) => `${pick(BASE62, 31)}7`,
    line: (it) => `ACME_API_KEY=${it}`,
  },
  'unknown vendor': {
    value: (pick) => `${pick(BASE62, 31)}7`,
    line: (it) => `export ACME_KEY=${it}`,
  },
  'yaml value': {
    value: (pick) => `${pick(BASE62, 23)}7`,
    line: (it) => `  client_secret: ${it}`,
  },
  'json value': {
    value: (pick) => `${pick(BASE64URL, 23)}7`,
    line: (it) => `{"host":"db","password":"${it}","port":5432}`,
  },
  'json in json': {
    value: (pick) => `${pick(BASE64URL, 23)}7`,
    line: (it) => String.raw`"{\"api_key\": \"${it}\", \"n\": 1}"`,
  },
  'code literal': {
    value: (pick) => `${pick(BASE62, 23)}7`,
    line: (it) => `const apiKey: string = '${it}';`,
  },
  'query string': {
    value: (pick) => pick(HEX, 32),
    line: (it) => `GET /v1/forecast?city=Oslo&api_key=${it}&units=metric`,
  },
  'chosen password': {
    value: (pick) => `Tr0ub4dor&${pick(DIGITS, 3)}`,
    line: (it) => `db_password = "${it}"`,
  },
  'told in words': {
    value: (pick) => `blue${pick(DIGITS, 4)}Harbor`,
    line: (it) => `The password for the staging server is ${it}, please use it.`,
  },
  'note about a password': {
    value: (pick) => `winter#${pick(DIGITS, 4)}`,
    line: (it) => `password for the staging database: ${it}`,
  },
  'yaml password': {
    value: (pick) => `hunter${pick(DIGITS, 3)}two`,
    line: (it) => `  password: ${it}`,
  },
  'git over https': {
    value: (pick) => pick(HEX, 40),
    line: (it) => `git clone https://${it}@github.com/acme/widgets.git`,
  },
  'session cookie': {
    value: (pick) => `${pick(BASE62, 40)}7`,
    line: (it) => `Set-Cookie: sid=${it}; HttpOnly; Path=/`,
  },
  'xml element': {
    value: (pick) => `S3cret${pick(BASE62, 6)}`,
    line: (it) => `<password>${it}</password>`,
  },
  netrc: {
    value: (pick) => `${pick(BASE62, 24)}7`,
    line: (it) => `machine git.example.com login anna password ${it}`,
  },
  'command line': {
    value: (pick) => `k${pick(BASE62, 15)}7`,
    line: (it) => `mysql --user app --password ${it} --host db`,
  },
  'curl user': {
    value: (pick) => `${pick(BASE62, 19)}7`,
    line: (it) => `curl -u deploy:${it} https://repo.example.com/`,
  },
};

export function plantSecrets(seed: number): PlantedSecret[] {
  const pick = pickerOf(seed);
  const formats = Object.entries(FORMATS).map(([name, make]) => {
    const secret = make(pick);
    return { name, secret, line: `the value is ${secret} and nothing else` };
  });
  const places = Object.entries(PLACES).map(([name, { value, line }]) => {
    const secret = value(pick);
    return { name, secret, line: line(secret) };
  });
  return [...formats, ...places];
}

/** The body lines of a key block, without its first and its last line. */
export function makeKeyLines(seed: number, lines: number): string[] {
  const pick = pickerOf(seed);
  return Array.from({ length: lines }, (_, at) => pick(BASE64, at === lines - 1 ? 40 : 64));
}
