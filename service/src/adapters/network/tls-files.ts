import { X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { codeOf, FileError } from '../../../../src/adapters/files/file-error.ts';
import { isPrivate } from '../../../../src/adapters/files/private-folder.ts';

/** Loads a certificate and its key from PEM files, and checks that they belong together. */

export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

export interface LoadedTls extends TlsFiles {
  /** When the first certificate of the chain expires, in milliseconds since 1970. */
  readonly expiresAt: number;
  /** The names and addresses that the certificate is for, in X.509's form. */
  readonly names: string;
  /** True if other users may read the key. */
  readonly isKeyLoose: boolean;
}

/** Loads the files. Throws FileError, which names the files and contains nothing of their text. */
export async function loadTls(paths: TlsFiles): Promise<LoadedTls> {
  const [cert, key] = [await readPem(paths.cert), await readPem(paths.key)];
  try {
    createSecureContext({ cert, key });
    const first = new X509Certificate(cert);
    return {
      cert,
      key,
      expiresAt: Date.parse(first.validTo),
      names: first.subjectAltName ?? first.subject,
      isKeyLoose: !isPrivate((await stat(paths.key)).mode),
    };
  } catch (error) {
    const hint = 'Give the certificate chain and its unencrypted key as PEM files.';
    const message = `${paths.cert} and ${paths.key} are not a certificate and its key.`;
    throw new FileError(message, hint, { cause: error });
  }
}

async function readPem(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const hint = 'Name a PEM file that you may read.';
    throw new FileError(`${path} cannot be read (${codeOf(error)}).`, hint, { cause: error });
  }
}
