/** Finds passwords in the arguments of commands, as in a shell's history and in scripts. */

import {
  isArgument,
  isLogin,
  isPassPhrase,
  isSimplePassword,
  looksRandom,
} from './secret-likeness.ts';
import { NO_REST, QUOTED_REST, type SecretRule } from './secret-rule.ts';

/** Matches the arguments between a program and its password, within one command. */
const ARGUMENTS = '[^\\n|;&[\\]]{0,200}?';
const VALUE = '[^\\s"\'`\\\\<>[\\]]';

/** Matches a word that shows that a text only mentions an option: "zip -P asks for the password". */
const VERB =
  '(?:asks?|prompts?|reads?|sets?|takes?|means|needs|wants|uses?|expects?|option|flag|instead|will|would|can)\\b';

/**
 * Programs with their option for a password. In other programs the same letter is a port or a path. svc tries the rule
 * of a row only if the text has one of the row's keywords.
 */
const OPTIONS: readonly (readonly [
  keywords: readonly string[],
  programs: string,
  option: string,
])[] = [
  [['mysql', 'mariadb'], 'mysql\\w{0,8}|mariadb[\\w-]{0,12}', '-p'],
  [
    ['docker', 'podman', 'helm', 'az ', 'skopeo', 'buildah', 'oc ', 'nerdctl'],
    '(?:docker|podman|helm|az|skopeo|buildah|oc|nerdctl)\\b[^\\n|;&[\\]]{0,40} login',
    '-p[= ]',
  ],
  [['redis-'], 'redis-(?:cli|benchmark)', '(?:-a|--pass)[= ]'],
  [['ldap'], 'ld(?:ap)\\w{3,8}', '-w ?'],
  [['mongo'], 'mongo(?:sh|dump|restore|export|import)?', '-p[= ]?'],
  [['lftp'], 'lftp', '-u ["\']?[\\w.@-]{1,64},'],
  [['openssl'], 'openssl', '-k '],
  [['openssl'], 'openssl passwd', '-(?:[156]|apr1) '],
  [['keytool', 'jarsigner'], 'keytool|jarsigner', '-(?:src|dest)?(?:store|key)pass '],
  [['ssh-keygen'], 'ssh-keygen', '-[NP] ?'],
  [['freerdp', 'xfreerdp', 'wfreerdp'], '[xw]?freerdp', '/p:'],
  [['signtool', 'pvk2pfx'], 'signtool|pvk2pfx', '[-/]p[io]? '],
  [['cmdkey'], 'cmdkey(?:\\.exe)?', '/pass:'],
  [['schtasks'], 'schtasks(?:\\.exe)?', '/rp '],
  [['snmp'], 'snmp\\w{3,8}', '-[AXc] '],
  [['snmp'], 'snmp\\w{3,8}', '-A \\S{4,64}[^\\n|;&]{0,80}? -X '],
  [['useradd', 'usermod'], 'useradd|usermod', '(?:-p|--password)[= ]'],
  [
    ['dsconf', 'dsctl', 'dsidm', 'ipa ', 'ipa-'],
    'ds(?:conf|ctl|idm)|ipa(?:-\\w{1,16}){0,4}',
    '-w ',
  ],
  [['hydra', 'medusa', 'doveadm'], 'hydra|medusa|doveadm pw', '-p '],
  [['security '], 'security (?:add|find)-\\w{1,12}-password', '-w '],
  [['keychain'], 'security (?:unlock|create)-keychain', '-p '],
  [['rclone'], 'rclone', 'pass(?:word)? '],
  [['zip ', 'unzip'], '(?:un)?zip', '-P ?'],
  [['7z ', '7za', '7zr', '7zz', 'rar ', 'unrar'], '7z\\w?|(?:un)?rar', '-h?p'],
  [
    ['smbclient', 'rpcclient', 'net ', 'mount.cifs'],
    'smbclient|rpcclient|net|mount\\.cifs',
    '-U ?["\']?[^\\s%"\'[\\]]{1,64}%',
  ],
  [['sqlcmd', 'bcp '], 'sqlcmd|bcp', '-P ?'],
  [
    ['secret'],
    'secrets?(?:manager)?[ :](?:set|put|create|add|update)[\\w-]{0,20}',
    '(?:-b ?|--body[= ]|--value[= ]|--secret-string[= ])',
  ],
  [['put-parameter'], 'put-parameter(?=[^\\n]{0,300}SecureString)', '--value[= ]'],
];

/** Patterns of what precedes a password at a fixed place: in a command, a line of settings, or a line of a protocol. */
const PLACES: readonly (readonly [keywords: readonly string[], before: string])[] = [
  [['requirepass', 'masterauth'], '\\b(?:requirepass|masterauth) '],
  [['mysqladmin'], `\\bmysqladmin ${ARGUMENTS} password `],
  [
    ['htpasswd', 'mosquitto_passwd'],
    '\\b(?:htpasswd|mosquitto_passwd) -\\w{0,6}b\\w{0,6}(?: -\\w{1,4}){0,3}(?:(?<=-\\w{0,6}n\\w{0,6})| [^\\s[\\]]{1,128}) [^\\s[\\]]{1,64} ',
  ],
  [
    ['rabbitmqctl'],
    '\\brabbitmqctl (?:-\\S{1,40} ){0,4}(?:add_user|change_password|authenticate_user) [^\\s[\\]]{1,64} ',
  ],
  [
    ['configure set'],
    `\\baws ${ARGUMENTS}configure set [\\w.-]{0,40}(?:secret_access_key|session_token) `,
  ],
  [
    ['net use'],
    '\\bnet use (?:[a-z*]:? )?[\\s\\\\]{1,4}[^\\s[\\]]{1,128} (?:/user:[^\\s[\\]]{1,64} )?(?![/*])',
  ],
  [['net user'], '\\bnet user [\\w.-]{1,64} (?![/*])(?=[^\\s[\\]]{4,64} /\\w)'],
  [['> auth '], '(?:redis|:\\d{2,5})> auth (?:[\\w-]{1,32} )?'],
  [
    ['bw unlock', 'encrypt_string'],
    '\\bbw unlock |\\bencrypt_string (?:--?[\\w-]{1,20}[= ]\\S{1,40} ){0,2}(?!-)',
  ],
  [
    ['sp_addlogin', 'sp_password'],
    '\\bsp_(?:addlogin|password) ["\'][^"\'\\n[\\]]{1,64}["\'], {0,2}',
  ],
  [['snmp-server'], '\\bsnmp-server community (?=\\S{4,64}\\s{0,2}(?:\\n|$))'],
  [['user-pass '], '\\bhttp-proxy-user-pass [^\\s[\\]]{1,64} '],
  [['--secret '], '\\bconfig set [^\\n|;&[\\]]{0,60}?--secret [\\w:.-]{1,64} '],
  [['wpa_passphrase'], '\\bwpa_passphrase [^\\s[\\]]{1,64} '],
  [['addauth'], '\\baddauth digest [\\w.@-]{1,64}:'],
  [
    ['alias set', 'host add'],
    '\\bmc (?:alias set|config host add) \\S{1,64} \\S{1,128} \\S{1,64} ',
  ],
  [['rootpw'], '(?<=^|[\\n:] ?)rootpw (?:--plaintext )?(?!-)'],
  [['mkpasswd'], '\\bmkpasswd (?:-\\S{1,20} (?:sha-?\\d{3}|md5|bcrypt|yescrypt)? ?){0,3}(?!-)'],
  [
    ['-password ', ':password '],
    '(?<=^|[\\n$;&|] {0,2}|\\bsudo )[\\w./-]{1,40} (?:[\\w-]{1,20} )?(?:[\\w-]{1,32}[:-](?:password|passwd) (?:(?!-)[\\w.@-]{1,40} (?=["\'])|(?<=admin-password )))(?!-)',
  ],
  [
    ['send', 'sendline'],
    '(?:assword|assphrase)[^"\'\\n]{0,8}["\'][);]{0,2}\\s{1,8}(?:\\w{1,12}\\.)?(?:send(?:line)?|exp_send)[ (](?:-- )?(?=["\'])',
  ],
  [['samba-tool'], '\\bsamba-tool user (?:create|add) [\\w.-]{1,64} (?!-)'],
  [['auth-pass'], '\\bauth-pass [\\w.-]{1,64} '],
  [['http-basic'], '\\bhttp-basic\\.[\\w.-]{1,80} [\\w.@-]{1,64} '],
  [['nmcli'], `\\bnmcli ${ARGUMENTS} password `],
  [['insecure-password'], '\\binsecure-password '],
  [['user '], '(?<=^|\\n)user [\\w-]{1,64} on (?:[~+&@*\\w]{1,40} ){0,4}>'],
  [
    ['secret ', 'password '],
    '\\b(?:enable|username [^\\s[\\]]{1,64}(?: privilege \\d{1,2})?) (?:secret|password) \\d ',
  ],
  [['snmp-server'], '\\bsnmp-server community (?=\\S{4,64} r[ow]\\b)'],
  [['pass:'], '-pass(?:in|out)?[ =]["\']?pass:'],
  [
    ['secret'],
    '(?<= ["\']?)[A-Za-z]\\w{1,60}=(?<=\\bsecrets?[ :](?:set|put|add) [^\\n|;&]{0,400})',
  ],
  [
    ['--from-literal'],
    '--from-literal(?<=\\bsecret generic [^\\n|;&]{0,400})[= ]["\']?[\\w.-]{1,64}=',
  ],
  [
    ['password '],
    '\\b(?:machine [^\\s[\\]]{1,128}|default)\\s{1,8}login [^\\s[\\]]{1,128}\\s{1,8}password ',
  ],
  [
    ['password '],
    '(?<=^|\\n)[ \\t]{0,8}(?:login|user(?:name)?) [^\\s[\\]]{1,128}[ \\t]{0,4}\\r?\\n[ \\t]{0,8}password (?=\\S{4,128}\\s{0,4}(?:\\n|$))',
  ],
];

const LITERAL_REST = /[^\n"'`\\<>[\]]*/y;
/** Matches the rest of a quoted argument with its blanks, or up to a blank if no quote closes it in 160 characters. */
const QUOTED_ARGUMENT = /[^\n"'`\\<>[\]]{0,160}(?=["'`])|[^\s"'`\\<>[\]{}]*/y;

/** Matches commands that read a password from the pipe. */
const READERS =
  '(?:[^\\n|[\\]]{0,120}--password-stdin|(?:sudo )?(?:sudo (?:-\\w )?-S|passwd --stdin|cryptsetup |kinit\\b|smbpasswd\\b|secret-tool store|keyring set|pass insert|(?:npx )?(?:wrangler|gh|fly|flyctl|docker|podman) secrets? (?:put|set|create)|(?:npx )?vercel env add \\w{0,40}(?:SECRET|PASS|TOKEN|KEY)))';

export const COMMAND_RULES: readonly SecretRule[] = [
  command(
    /(?<keep>(?:\b[sS][pP]_(?:addlogin|password) ["'][^"'\n[\]]{1,64}["'], {0,2}|= {0,2}PASSWORD\( {0,2})["'])[^\n"'`\\<>[\]]{5}/g,
    ['sp_addlogin', 'sp_password', 'password('],
    {
      rest: LITERAL_REST,
      accepts: ({ secret, next }) => /^["']$/.test(next) && isLiteralArgument(secret),
      source: 'SQL: the password of a login as an argument, which may be a pass phrase',
    },
  ),
  command(
    /(?<keep>(?:^|[\s"'`])(?:-u|--user|--proxy-user)(?:=|[ \t]{0,5})["']?(?:"[^"\n]{0,64}"|[^\s:"'[\]]{0,64}):["']?)[^\s"'`\\<>[\]]{3}/g,
    ['-u', '--user', '--proxy-user'],
    {
      rest: /[^\s"'`\\<>[\]]*/y,
      accepts: isLogin,
      source: 'curl and its like: user and password in one argument',
    },
  ),
  command(
    /(?<keep>(?<![\w./:-])(?:curl|xh|https?) (?:[^\n|;&[\]]{0,200}? )?(?:-[a-zA-Z]{0,6}u|-a|--user|--auth|--proxy-user)(?:=|[ \t]{0,5})["']?[^\s:"'$<{[\]]{1,64}:)[^\s"'`\\<>[\]]{4}/g,
    ['curl', 'http', 'xh '],
    { source: 'curl and its like, with a password of letters alone' },
  ),
  command(
    /(?<keep>(?:^|\s)(?:-u|--user)(?:=|[ \t]{0,5})["'])[^\s"'`\\<>[\]:]{6,64}(?=:["'])/g,
    ['-u', '--user'],
    {
      rest: NO_REST,
      accepts: isLogin,
      source: 'curl with a token for the user and no password',
    },
  ),
  ...OPTIONS.map(([keywords, programs, option]) =>
    command(
      new RegExp(
        `(?<keep>\\b(?:${programs})\\b(?:${ARGUMENTS}) ${option}["']?)(?!${VERB})${VALUE}{4}`,
        'y',
      ),
      keywords,
      { source: `An option with a password: ${programs}`, isAtKeyword: true },
    ),
  ),
  command(new RegExp(`(?<keep>\\bsshpass\\b${ARGUMENTS} -p ?["']?)${VALUE}{3}`, 'g'), ['sshpass'], {
    source: 'sshpass: only a password follows, however short',
  }),
  ...PLACES.map(([keywords, before]) =>
    command(new RegExp(`(?<keep>${before}["']?)${VALUE}{4}`, 'gi'), keywords, {
      source: 'A password at its place in a command, or in a line of settings without a sign',
    }),
  ),
  command(
    /(?<keep>(?<=^|[\n$;&|`"'] {0,2}|\bsudo )[\w./-]{1,40} (?:[\w-]{1,20} ){0,2}(?:login|auth|signin|sign-in|authenticate)(?: init)?(?: -t| --token| -p| --password)?[ =]["']?)[^\s"'`\\<>[\]]{14}/gi,
    ['login ', 'auth ', 'signin ', 'sign-in ', 'authenticate '],
    {
      accepts: ({ secret }) => looksRandom(secret) && isArgument(secret),
      source: 'A token behind the verb of a login',
    },
  ),
  command(
    new RegExp(
      `(?<keep>\\b(?:echo|printf)(?: -\\w{1,3}){0,2} ["']?)${VALUE}{5,256}(?=(?:\\\\n|\\n)?["']? ?\\| ?${READERS})`,
      'g',
    ),
    'password-stdin;sudo;passwd;cryptsetup;secret;kinit;keyring;pass insert;env add'.split(';'),
    { rest: NO_REST, source: 'A password that a command reads from a pipe' },
  ),
  command(
    /(?<keep>(?:-file[= ]|\b(?:key|pass\w{0,10}|secret|psk|token) |\b(?:\w{0,12}pass\w{0,10}|wrangler|secret|kinit|sudo|cryptsetup|gpg|openssl|docker|restic|borg|secret-tool|pass|keyring)\b[^\n|;&<[\]]{0,200} )<(?:<<|\((?:echo|printf)(?: -n)?) ?\$?["']?)[^\s"'`\\<>[\]()]{4}/g,
    ['<<<', '<(echo', '<(printf'],
    {
      rest: /[^\s"'`\\<>[\]()]*/y,
      source: 'A password that a command reads from a string of the shell',
    },
  ),
  command(
    /(?<keep>\b(?:echo -e|printf) ["'])[^\s"'`\\<>[\]]{4,64}(?:\\n|\n)[^\s"'`\\<>[\]]{4,64}(?=(?:\\n|\n)?["'] ?\| ?(?:sudo )?(?:passwd|smbpasswd|adduser)\b)/g,
    ['passwd', 'adduser'],
    { rest: NO_REST, source: 'A password that is typed twice, from a pipe' },
  ),
  command(
    /(?<keep>\b(?:echo ["']?|chpasswd ?<<< ?["']?)[\w.-]{1,64}:)[^\s"'`\\<>[\]]{5,64}(?=["']?(?: ?\| ?(?:sudo )?chpasswd|(?<=\bchpasswd ?<<<[^\n]{1,140})))/g,
    ['chpasswd'],
    { rest: NO_REST, source: 'A password that chpasswd reads' },
  ),
  command(
    /(?<keep>(?:-pass(?:word|phrase)?-?command[= ]["']|_(?:PASSWORD|PASSPHRASE|PASS)_?COMMAND=["'])(?:echo|printf)(?: -n)? )[^\s"'`\\<>[\]]{4}/g,
    ['command'],
    { source: 'A password that a program reads from the command of an option' },
  ),
  command(
    /(?<keep>::add-mask::|;issecret=true(?:;\w{1,16}=\w{1,8})?\])[^\s"'`\\<>[\]]{4}/gi,
    ['::add-mask::', 'issecret'],
    {
      rest: /[^\s"'`<>[\]]*/y,
      source: 'GitHub Actions and Azure Pipelines: what a step declares to be a secret',
    },
  ),
  command(
    /(?<keep>\bConvertTo-SecureString (?:-String )?["'])[^\s"'`\\<>[\]]{4}/gi,
    ['convertto-securestring'],
    { source: 'PowerShell: the text of a secure string' },
  ),
  command(
    /(?<keep>(?<=\s)[-/](?:[uUn]|-?user(?:name)?)[ =:]["']?[\w.@\\-]{1,64}["']? (?<!\b(?:mysql\w{0,8}|mariadb|psql|ssh|scp)\b[^\n|;&]{0,200})[-/]-?[pP](?:w|ass|assword)?[ =:]["']?)(?!\d{1,5}(?:[:\s]|$))[^\s"'`\\<>[\]]{4}/g,
    [' -p', ' /p'],
    { source: 'Any program: next to a user, -p is the password and no port' },
  ),
  command(
    /(?<keep>(?:\.auth ?|(?<!\w)auth ?= ?|(?<!\w)(?:login|\w{0,24}(?:[bB]asic_?[aA]uth|PlainAuth|set_auth|Credentials\.basic|Authentication|Credentials?)|DBI->connect|(?:pymysql|MySQLdb|pymssql|psycopg2?|oracledb|cx_Oracle|mariadb|ftplib\.FTP)(?:\.connect)?|new (?:PDO|Sequelize)|WiFi\.(?:begin|softAP)|mysqli?(?:_connect)?|getConnection)(?:\]::new)? ?)\( ?(?:[^\n()[\]]{1,160}?, {0,2}|""?, {0,2})?(?:["'`][^"'`\n[\]]{1,64}["'`]|(?<=\.login ?\( ?)[\w.$]{1,40}), {0,2}["'`])[^\n"'`\\<>[\]]{5}/g,
    ['auth', 'login', 'connect', 'pdo', 'mysqli', 'credential', 'sequelize', 'ftplib', 'wifi.'],
    {
      rest: LITERAL_REST,
      accepts: ({ context, secret, next }) =>
        /^["'`]$/.test(next) &&
        isLiteralArgument(secret) &&
        // If no user in quotes precedes, the value may be any argument, so an ordinary word does not count.
        (/["'`], {0,2}["'`]$/.test(context) || isSimplePassword(secret)),
      source: 'A user and a password as two arguments of a login',
    },
  ),
  command(
    /(?<keep>\b(?:identified\b[^\n"'[\]]{0,40}? by|(?:(?:user|role) ["'`]?\w{1,64}["'`]? (?:\w{1,16} ){0,3})?password) ["'])[^\n"'`\\<>[\]]{5}/gi,
    ['identified', 'password '],
    {
      rest: LITERAL_REST,
      accepts: ({ context, secret, next }) =>
        /^["']$/.test(next) &&
        isLiteralArgument(secret) &&
        (/ by|(?:user|role) /i.test(context) || isSimplePassword(secret) || / /.test(secret)),
      source: 'SQL: IDENTIFIED BY and WITH PASSWORD',
    },
  ),
  command(
    /(?<keep>\b(?:create|alter) user \S{1,64} identified by |\bset password\b[^\n=[\]]{0,80}= ?(?:password\()?["'])[^\s"'`\\<>[\](),;]{4}/gi,
    ['identified by', 'set password'],
    {
      quotedRest: QUOTED_ARGUMENT,
      rest: /[^\s"'`\\<>[\](),;]*/y,
      accepts: ({ secret }) => isArgument(secret) && !/^(?:values|external|:)/i.test(secret),
      source: 'SQL of Oracle, without quotes, and of MySQL',
    },
  ),
];

/** Says whether an argument is a password or a pass phrase in quotes. */
function isLiteralArgument(secret: string): boolean {
  return /\s/.test(secret) ? isPassPhrase(secret, false) : isArgument(secret);
}

function command(
  pattern: RegExp,
  keywords: readonly string[],
  more: Partial<SecretRule> & { source: string },
): SecretRule {
  return {
    kind: 'password',
    pattern,
    keywords,
    rest: QUOTED_REST,
    quotedRest: more.rest ?? QUOTED_ARGUMENT,
    accepts: ({ secret }) => isArgument(secret),
    ...more,
  };
}
