/** Which project a folder belongs to. Nothing here ever rejects: a folder is its own project then. */
export interface Projects {
  /** The project if it is known without waiting; undefined for a folder not looked at yet. */
  known(folder: string): Project | undefined;
  find(folder: string): Promise<Project>;
}

export interface Project {
  readonly space: string;
  /** Spaces in which the same project was kept before, such as one for each of its folders. */
  readonly olderSpaces: readonly string[];
  /**
   * The real path of the working tree that the folder is in, or of the folder itself; undefined for
   * a folder that is not on this machine.
   */
  readonly root?: string;
  /** The branch that is checked out there. */
  readonly branch?: string;
}
