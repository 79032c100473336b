/** Safety checks of the store; see list.mjs. */

const OPENED_FILE = 'src/adapters/store/opened-file.ts';
const STEADY_CLIENT = 'src/adapters/store/steady-client.ts';
const REPLACED = 'test/adapters/store-replaced.test.ts';
const STEADY = 'test/adapters/store-steady.test.ts';

export const STORE = [
  {
    name: 'a file that was deleted is asked on',
    file: 'src/adapters/store/store.ts',
    from: '    leaveReplaced(database, this.#options);\n',
    to: '',
    test: REPLACED,
  },
  {
    name: 'what another program wrote to the file is not looked for',
    file: 'src/adapters/store/database.ts',
    from: '    this.#writings += 1;\n',
    to: '',
    test: REPLACED,
  },
  {
    name: 'pages from before another program wrote are believed',
    file: 'src/adapters/store/database.ts',
    from: "    this.#rows.exec('PRAGMA shrink_memory');\n",
    to: '',
    test: REPLACED,
  },
  {
    name: 'a backup copied over the file is mixed with its log',
    file: OPENED_FILE,
    from: 'if (isEarlier(header, this.#header)) {',
    to: 'if (false) {',
    test: REPLACED,
  },
  {
    name: 'logs of a deleted database stay beside a new one',
    file: 'src/adapters/store/replaced-file.ts',
    from: "  if (state === 'replaced' && !database.isAtPath()) database.leaveMoved();\n",
    to: '',
    test: REPLACED,
  },
  {
    name: 'half of a backup is taken for the whole',
    file: OPENED_FILE,
    from: "isOlder(stat.ctimeNs, COPIED_MS) ? 'overwritten' : 'overwriting'",
    to: "'overwritten'",
    test: REPLACED,
  },
  {
    name: 'a log that was deleted is not missed',
    file: OPENED_FILE,
    from: 'if (known !== undefined && known !== identity) {',
    to: 'if (false) {',
    test: REPLACED,
  },
  {
    name: 'what a deleted log holds is lost with it',
    file: 'src/adapters/store/replaced-file.ts',
    from: "  if (state === 'unlogged') database.checkpoint();\n",
    to: '',
    test: REPLACED,
  },
  {
    name: 'what a replaced store held counts as stored',
    file: 'src/adapters/store/embedded-store.ts',
    from: '      outbox.forgetSettled();\n',
    to: '',
    test: REPLACED,
  },
  {
    name: 'a journal that was deleted is written on',
    file: 'src/adapters/journals/journal.ts',
    from: 'old !== undefined && isAt(this.#path, this.#identity)',
    to: 'old !== undefined',
    test: REPLACED,
  },
  {
    name: 'outputs of a replaced store count as stored',
    file: 'src/proxy/shortener.ts',
    from: '    this.#keeper.refresh();\n',
    to: '',
    test: 'test/proxy/replaced-store.test.ts',
  },
  {
    name: 'history of a replaced store counts as kept',
    file: 'src/proxy/capture-keeper.ts',
    from: 'if (state.keptIn !== generation) {',
    to: 'if (false) {',
    test: 'test/proxy/replaced-store.test.ts',
  },
  {
    name: 'a service proves from a file that was deleted',
    file: 'src/adapters/service-store/store.ts',
    from: '    if (!isOwnFile(database)) this.#fail();\n',
    to: '',
    test: 'test/adapters/service-store.test.ts',
  },
  {
    name: 'reads wait for writes',
    file: STEADY_CLIENT,
    from: 'const isHelped = this.#isOpen && READS.has(name);',
    to: 'const isHelped = false;',
    test: STEADY,
  },
  {
    name: 'proofs wait for writes',
    file: STEADY_CLIENT,
    from: "  'hold',\n",
    to: '',
    test: STEADY,
  },
  {
    name: 'the second worker is asked for ever',
    file: STEADY_CLIENT,
    from: '      this.#isLate = false;\n',
    to: '',
    test: STEADY,
  },
  {
    name: 'a thread that ends closes its descriptors, and with them the locks of the others',
    file: 'src/adapters/store/client.ts',
    from: '      trackUnmanagedFds: false,\n',
    to: '',
    test: STEADY,
    only: 'leaves the other ones',
  },
  {
    name: 'captures wait as long as anybody asks',
    file: 'src/adapters/store/call-queue.ts',
    from: 'this.#inRow >= URGENT_IN_A_ROW',
    to: 'this.#inRow < 0',
    test: 'test/adapters/call-queue.test.ts',
  },
  {
    name: 'a store closes before it has answered',
    file: 'src/adapters/store/call-queue.ts',
    from: "other.name !== 'close' && ",
    to: '',
    test: 'test/adapters/call-queue.test.ts',
  },
];
