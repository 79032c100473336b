import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A self-signed certificate for these names, made by openssl: no private key lies in the repository. */
export function makeCertificate(...names: string[]): { key: string; cert: string } {
  const folder = mkdtempSync(join(tmpdir(), 'svc-certificate-'));
  try {
    const keyFile = join(folder, 'key.pem');
    const certFile = join(folder, 'cert.pem');
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
    const files = ['-keyout', keyFile, '-out', certFile];
    const subject = `subjectAltName=${names.map((name) => `DNS:${name}`).join(',')}`;
    const about = ['-days', '2', '-subj', `/CN=${names[0] ?? ''}`, '-addext', subject];
    execFileSync('openssl', ['req', '-x509', ...curve, ...files, ...about], { stdio: 'ignore' });
    return { key: readFileSync(keyFile, 'utf8'), cert: readFileSync(certFile, 'utf8') };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
