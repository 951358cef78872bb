/** A file of the page. */
export interface PageFile {
  /** Its name, with a hash of its content: `page-1a2b3c.js`. */
  readonly name: string
  readonly bytes: Uint8Array
}

/** Gives the files of the page: one script and one style sheet. `#dashboard-page` is a module with such a function as `pageFiles`. */
export type PageFiles = () => Promise<readonly PageFile[]>
