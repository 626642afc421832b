import { parse, stringify } from 'uuid'
import { isId } from '../domain/index.ts'

/** A cursor stands for the last order of a page: its id, in a form that nobody is tempted to make by hand. */
export function cursorOf(id: string): string {
  return Buffer.from(parse(id)).toString('base64url')
}

/** The id behind a cursor of ours; undefined for any other text. */
export function idOfCursor(cursor: string): string | undefined {
  const bytes = Buffer.from(cursor, 'base64url')
  if (bytes.length !== 16 || bytes.toString('base64url') !== cursor) return undefined
  try {
    const id = stringify(bytes)
    return isId(id) ? id : undefined
  } catch {
    return undefined
  }
}
