/** Master keys of a vault, kept outside of the database. */
export interface MasterKeys {
  /** 32 bytes; undefined when no source is named for it. Rejects with FileError when it cannot be read. */
  find(id: string): Promise<Uint8Array | undefined>;
}
