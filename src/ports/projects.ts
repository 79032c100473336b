/**
 * Which project a folder or a stated space belongs to. Nothing here ever rejects: a folder is its own project
 * then, and a space keeps its name.
 */
export interface Projects {
  /** The project if it is known without waiting; undefined for a place not looked at yet. */
  known(place: Place): Project | undefined;
  find(place: Place): Promise<Project>;
}

/** A folder, or a space that is stated without one. The person may have renamed either. */
export type Place = string | { readonly space: string };

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
  /** The person switched memory off for this project: nothing new is recalled in it, and nothing is captured. */
  readonly isMemoryOff?: true;
}
