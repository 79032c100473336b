/**
 * The files that the service managers of Linux and macOS need to keep the proxy running for one
 * user. They hold no secret: keys come from the configuration file.
 */
export interface UnitFacts {
  /** Absolute paths: the program and its script. */
  readonly node: string;
  readonly script: string;
  /** Settings of svc that were in force when the unit was made: SVC_CONFIG_HOME and its like. */
  readonly environment: readonly (readonly [name: string, value: string])[];
}

/** https://www.freedesktop.org/software/systemd/man/systemd.service.html */
export function systemdUnit({ node, script, environment }: UnitFacts): string {
  return [
    '[Unit]',
    'Description=svc local proxy: memory for coding agents',
    'After=network-online.target',
    // A wrong configuration does not become right by itself: five tries in a minute are enough. By its
    // default systemd counts within 10 s, in which a try every 2 s never comes to five.
    'StartLimitIntervalSec=60',
    'StartLimitBurst=5',
    '',
    '[Service]',
    ...environment.map(([name, value]) => `Environment=${systemdWord(`${name}=${value}`)}`),
    // In a command line, and only there, systemd expands variables.
    `ExecStart=${[node, script].map(systemdWord).join(' ').replaceAll('$', '$$$$')} start --quiet`,
    'Restart=on-failure',
    'RestartSec=2',
    'NoNewPrivileges=true',
    '',
    '[Install]',
    'WantedBy=default.target',
    '',
  ].join('\n');
}

export const LAUNCHD_LABEL = 'svc-local-proxy';

/** launchd.plist(5) */
export function launchdPlist({ node, script, environment }: UnitFacts): string {
  const variables = environment.flatMap(([name, value]) => [
    `    <key>${xmlText(name)}</key>`,
    `    <string>${xmlText(value)}</string>`,
  ]);
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">',
    '<plist version="1.0">',
    '<dict>',
    '  <key>Label</key>',
    `  <string>${LAUNCHD_LABEL}</string>`,
    '  <key>ProgramArguments</key>',
    '  <array>',
    ...[node, script, 'start', '--quiet'].map((word) => `    <string>${xmlText(word)}</string>`),
    '  </array>',
    '  <key>EnvironmentVariables</key>',
    '  <dict>',
    ...variables,
    '  </dict>',
    '  <key>RunAtLoad</key>',
    '  <true/>',
    '  <key>KeepAlive</key>',
    '  <dict>',
    '    <key>SuccessfulExit</key>',
    '    <false/>',
    '  </dict>',
    '</dict>',
    '</plist>',
    '',
  ].join('\n');
}

// Quoted, with what systemd would expand or end the word at taken literally.
function systemdWord(text: string): string {
  const literal = text.replaceAll(/[\\"]/g, (character) => `\\${character}`);
  return `"${literal.replaceAll('%', '%%')}"`;
}

function xmlText(text: string): string {
  const names: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };
  return text.replaceAll(/[&<>]/g, (character) => names[character] ?? '');
}
