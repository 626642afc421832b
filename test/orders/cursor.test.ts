import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cursorOf, idOfCursor } from '../../src/orders/index.ts'
import { someId } from '../support/order-write.ts'

test('a cursor leads back to the id that it stands for', () => {
  const id = someId()
  expect(idOfCursor(cursorOf(id))).toBe(id)
})

test.each([
  '',
  'x',
  '__proto__',
  // Another version of UUID, and an id as it is.
  Buffer.from('3b241101e2bb4255 8caf4136c566a962'.replace(' ', ''), 'hex').toString('base64url'),
  '01890a5d-ac96-774b-bcce-b302099a8057',
  'AAAAAAAAAAAAAAAAAAAAAA',
])('%j is no cursor', text => {
  expect(idOfCursor(text)).toBeUndefined()
})

test('no other spelling of a cursor is taken', () => {
  const cursor = cursorOf(someId())
  for (const other of [`${cursor}=`, `${cursor}==`, ` ${cursor}`, `${cursor.slice(0, -1)}*`, `${cursor}AA`]) {
    expect(idOfCursor(other)).toBeUndefined()
  }
})

test('whatever text comes, it is the cursor of an id or none', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.base64String({ minLength: 20, maxLength: 24 })), text => {
      const id = idOfCursor(text)
      expect(id === undefined || cursorOf(id) === text).toBe(true)
    }),
  )
})
