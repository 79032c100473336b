/**
 * Finds the project of a folder or a stated space. No method rejects: if nothing is known, a folder is its own project,
 * and a space keeps its name.
 */
export interface Projects {
  /** Returns the project if it is known without waiting; undefined for a place not examined yet. */
  known(place: Place): Project | undefined;
  find(place: Place): Promise<Project>;
}

/** A folder, or a space that the client states without a folder. The user may have renamed the space of either. */
export type Place = string | { readonly space: string };

export interface Project {
  readonly space: string;
  /** Spaces that held the memories of this project earlier, such as one for each of its folders. */
  readonly olderSpaces: readonly string[];
  /** The real path of the working tree, or of the folder itself; undefined for a folder on another machine. */
  readonly root?: string;
  readonly branch?: string;
  /** True if the user switched memory off for this project: nothing new is recalled or captured. */
  readonly isMemoryOff?: true;
}
