/** Passwords as arguments of commands, as a shell's history and scripts have them. */

import { isArgument, isLogin } from './password-arguments.ts';
import { isSimplePassword } from './secret-likeness.ts';
import { NO_REST, QUOTED_REST, type SecretRule } from './secret-rule.ts';

export const COMMAND_RULES: readonly SecretRule[] = [
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
    /(?<keep>\b(?:echo|printf)(?: -\w{1,3}){0,2} ["']?)[^\s"'`\\<>[\]]{5,256}(?=["']? ?\| ?[^\n|[\]]{0,120}--password-stdin)/g,
    ['password-stdin'],
    { rest: NO_REST, source: 'A password piped to a registry login' },
  ),
  command(
    /(?<keep>\b(?:requirepass|masterauth) ["']?)[^\s"'`\\<>[\]]{4}/g,
    ['requirepass', 'masterauth'],
    {
      source: 'The configuration of Redis',
    },
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
  command(
    /(?<keep>\b(?:mysql\w{0,8}|mariadb[\w-]{0,12})\b[^\n|;&[\]]{0,200}? -p["']?)[^\s"'`\\<>[\]]{4}/g,
    ['mysql', 'mariadb'],
    {
      source: 'MySQL: the password follows -p with nothing between',
    },
  ),
  command(/(?<keep>\bsshpass (?:-\w )?-p ?["']?)[^\s"'`\\<>[\]]{3}/g, ['sshpass'], {
    source: 'sshpass',
  }),
  command(
    /(?<keep>\b(?:docker|podman|helm|az|skopeo|buildah|oc|nerdctl)\b[^\n|;&[\]]{0,40} login\b[^\n|;&[\]]{0,160}? -p[= ]["']?)[^\s"'`\\<>[\]]{4}/g,
    [' login'],
    {
      source: 'Registry logins',
    },
  ),
  command(
    /(?<keep>\bredis-cli\b[^\n|;&[\]]{0,160}? (?:-a|--pass)[= ]["']?)[^\s"'`\\<>[\]]{4}/g,
    ['redis-cli'],
    { source: 'Redis' },
  ),
  command(
    /(?<keep>\bld(?:ap)\w{3,8}\b[^\n|;&[\]]{0,200}? -w ?["']?)[^\s"'`\\<>[\]]{4}/g,
    ['ldap'],
    { source: 'OpenLDAP' },
  ),
  command(
    /(?<keep>\bhtpasswd -\w{0,6}b\w{0,6}(?: -\w{1,4}){0,3} [^\s[\]]{1,128} [^\s[\]]{1,64} ["']?)[^\s"'`\\<>[\]]{4}/g,
    ['htpasswd'],
    { source: 'htpasswd with the password as an argument' },
  ),
  command(
    /(?<keep>\bmongo(?:sh|dump|restore|export|import)?\b[^\n|;&[\]]{0,200}? -p[= ]?["']?)[^\s"'`\\<>[\]]{4}/g,
    ['mongo'],
    { source: 'MongoDB' },
  ),
  command(/(?<keep>\bopenssl\b[^\n|;&[\]]{0,200}? -k ["']?)[^\s"'`\\<>[\]]{4}/g, ['openssl'], {
    source: 'OpenSSL: the password of a symmetric cipher',
  }),
  command(
    /(?<keep>\bkeytool\b[^\n|;&[\]]{0,200}? -(?:src|dest)?(?:store|key)pass ["']?)[^\s"'`\\<>[\]]{4}/g,
    ['keytool'],
    { source: 'Keystores of Java' },
  ),
  command(
    /(?<keep>\bssh-keygen\b[^\n|;&[\]]{0,160}? -N ?["']?)[^\s"'`\\<>[\]]{4}/g,
    ['ssh-keygen'],
    { source: 'OpenSSH: the passphrase of a new key' },
  ),
  command(
    /(?<keep>\b[xw]?freerdp\b[^\n|;&[\]]{0,160}? \/p:["']?)[^\s"'`\\<>[\]]{4}/g,
    ['freerdp'],
    { source: 'Remote desktop' },
  ),
  command(/(?<keep>-pass(?:in|out)?[ =]["']?pass:)[^\s"'`\\<>[\]]{4}/g, ['pass:'], {
    source: 'OpenSSL',
  }),
  command(
    /(?<keep>\b(?:unzip|zip)\b[^\n|;&[\]]{0,120}? -P ["']?|\b7z\w? [^\n|;&[\]]{0,120}? -p)[^\s"'`\\<>[\]]{4}/g,
    ['zip', '7z'],
    { source: 'Archives with a password' },
  ),
  command(
    /(?<keep>\b(?:smbclient|rpcclient|net|mount\.cifs)\b[^\n|;&[\]]{0,160}? -U ?["']?[^\s%"'[\]]{1,64}%)[^\s"'`\\<>[\]]{4}/g,
    ['smbclient', 'rpcclient', 'net '],
    { source: 'Samba: user%password' },
  ),
  command(
    /(?<keep>\b(?:sqlcmd|bcp)\b[^\n|;&[\]]{0,200}? -P ?["']?)[^\s"'`\\<>[\]]{4}/g,
    ['sqlcmd', 'bcp '],
    { source: 'SQL Server' },
  ),
  command(
    /(?<keep>\becho (?:-n )?["']?)[^\s"'`\\<>[\]]{5,64}(?=["']? ?\| ?sudo (?:-\w )?-S)/g,
    ['sudo'],
    { rest: NO_REST, source: 'A password piped to sudo' },
  ),
  command(
    /(?<keep>\bmachine [^\s[\]]{1,128}\s{1,8}login [^\s[\]]{1,128}\s{1,8}password ["']?)[^\s"'`\\<>[\]]{4}/g,
    ['machine '],
    { source: '.netrc' },
  ),
  command(
    /(?<keep>\becho ["']?[\w.-]{1,64}:)[^\s"'`\\<>[\]]{5,64}(?=["']? ?\| ?(?:sudo )?chpasswd)/g,
    ['chpasswd'],
    { rest: NO_REST, source: 'A password piped to chpasswd' },
  ),
  command(
    /(?<keep>\bauth ?(?:= ?)?\( ?["'`][^"'`\n[\]]{1,64}["'`], {0,2}["'`])[^\s"'`\\<>[\]]{5}/g,
    ['auth'],
    { source: 'A user and a password as two arguments' },
  ),
  command(
    /(?<keep>\b(?:identified\b[^\n"'[\]]{0,40}? by|(?:(?:user|role) ["'`]?\w{1,64}["'`]? (?:with )?)?password) ["'])[^\s"'`\\<>[\]]{5}/gi,
    ['identified', 'password '],
    {
      accepts: ({ context, secret, next }) =>
        /^["']$/.test(next) &&
        isArgument(secret) &&
        (/ by|(?:user|role) /i.test(context) || isSimplePassword(secret)),
      source: 'SQL: IDENTIFIED BY and WITH PASSWORD',
    },
  ),
];

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
    accepts: ({ secret }) => isArgument(secret),
    ...more,
  };
}
