import { storeContract } from '../contracts/store.contract.ts'
import { SqlitePlace } from '../support/sqlite-place.ts'

storeContract('sqlite', () => new SqlitePlace())
