import { expect, test } from 'vitest';
import { recordBytes, recordOfText } from '../../src/core/memory-api/canonical.ts';
import {
  contentDigest,
  contentReference,
  referenceOf,
  type TextRole,
  textDigest,
} from '../../src/core/memory/reference.ts';

interface Named {
  readonly role: TextRole;
  readonly text: string;
  /** Digest and reference of the text, then of its record. */
  readonly names: readonly [string, string, string, string];
}

/** As version 0.1.2 wrote them into databases, files, stubs and blocks. */
const RELEASED: readonly Named[] = [
  {
    role: 'user',
    text: 'The port is 6432.',
    names: [
      'hILH1qee1CYIiRMW6jk7uk1a7Lc8UpHR5w2d2v4ArUw',
      'm_qsbmpvvht3kcmcej',
      'sha256:N69VpGpESNctZk68DvxVt30uF4Qeb8wfvdVZmgScQ1I',
      'ex_g6xvljdkirenollg',
    ],
  },
  {
    role: 'assistant',
    text: 'Größe: 5 µm 😀',
    names: [
      'Q_nhFVnp_GV502EDx7238YbPIkuofnM0Cb4T0RkUkUg',
      'm_ip46cfkz5h6gk6ot',
      'sha256:QQQwUTsPPY-hVBVCmCImzKZWEDuqMkU0xGCbrcRhN_c',
      'ex_iecdauj3b46y7iku',
    ],
  },
  {
    role: 'tool',
    text: 'line 1\nline 2\n',
    names: [
      'rJI28Rf9vbAjm1H5e9czb4yOMqnZUccARJfml_1OkSI',
      'm_vsjdn4ix7w63ai43',
      'sha256:fcSlf7JUlqImQAzkUMyNtHUAKg3aFFJuS68lNuw2z4w',
      'to_pxckk75skslkejsa',
    ],
  },
];

test.each(RELEASED)('a $role text keeps the names that stand in old conversations', (one) => {
  const { role, text, names } = one;
  const digest = textDigest(role, text);
  expect(textDigest(role, Buffer.from(text, 'utf8'))).toBe(digest);
  const record = recordOfText(role, text);
  const content = contentDigest(recordBytes(record) ?? Buffer.alloc(0));
  const found = [digest, referenceOf(digest), content, contentReference(record.k, content)];
  expect(found).toEqual(names);
});
