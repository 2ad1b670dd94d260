// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// Reads a block header as its hash covers it: one list of strings in canonical RLP, nothing else before or after.
/// A caller that has compared the header's hash needs none of this strictness; it is for the one that was deceived.
library HeaderRlp {
    uint256 private constant DIFFICULTY = 7;
    uint256 private constant HEIGHT = 8;
    uint256 private constant EXTRA = 12;
    uint256 private constant RANDAO = 13; // EIP-4399: once `mixHash`
    uint256 private constant NONCE = 14;
    /// Every chain since proof of stake has the base fee too; what later forks append is only checked for its form.
    uint256 private constant LEAST_FIELDS = 16;

    error MalformedHeader(uint256 offset);
    error WrongHeight(uint256 have, uint256 need);
    /// The header is of a chain, or of a time, without proof of stake: field 13 is not randomness there.
    error NoRandomness(uint256 height);

    /// The randomness that the block of that height was made with.
    function randaoOf(bytes calldata header, uint256 height) internal pure returns (bytes32 randao) {
        uint256 next = _list(header);
        uint256 field;
        for (; next < header.length; ++field) {
            uint256 start;
            uint256 offset = next;
            (start, next) = _string(header, offset);
            uint256 size = next - start;
            if (field <= NONCE && !_fits(header, field, start, size)) revert MalformedHeader(offset);
            if (field == DIFFICULTY && size != 0) revert NoRandomness(height);
            if (field == HEIGHT) {
                uint256 have = uint256(bytes32(header[start:next]) >> (8 * (32 - size)));
                if (have != height) revert WrongHeight(have, height);
            }
            if (field == RANDAO) randao = bytes32(header[start:next]);
        }
        if (field < LEAST_FIELDS) revert MalformedHeader(header.length);
        if (randao == 0) revert NoRandomness(height);
    }

    /// Whether a field has its size, and a number no leading zero.
    function _fits(bytes calldata header, uint256 field, uint256 start, uint256 size) private pure returns (bool) {
        if (field == 2) return size == 20;
        if (field == 6) return size == 256;
        if (field == NONCE) return size == 8;
        if (field == EXTRA) return true;
        if (field < DIFFICULTY || field == RANDAO) return size == 32;
        return size <= 32 && (size == 0 || header[start] != 0);
    }

    /// Where the content of the list starts that fills the whole header.
    function _list(bytes calldata header) private pure returns (uint256 start) {
        if (header.length == 0 || uint8(header[0]) < 0xf8) revert MalformedHeader(0); // none is as short as 55 bytes
        uint256 size;
        (start, size) = _long(header, 0, uint8(header[0]) - 0xf7);
        if (size != header.length - start) revert MalformedHeader(0);
    }

    /// Where the content of the string at `offset` starts, and where the next item does.
    function _string(bytes calldata header, uint256 offset) private pure returns (uint256 start, uint256 next) {
        uint256 prefix = uint8(header[offset]);
        if (prefix < 0x80) return (offset, offset + 1);
        if (prefix >= 0xc0) revert MalformedHeader(offset);
        uint256 size;
        if (prefix > 0xb7) (start, size) = _long(header, offset, prefix - 0xb7);
        else (start, size) = (offset + 1, prefix - 0x80);
        if (size > header.length - start) revert MalformedHeader(offset);
        if (size == 1 && uint8(header[start]) < 0x80) revert MalformedHeader(offset);
        return (start, start + size);
    }

    /// A size of more than 55 bytes, which itself is written in `width` bytes after the prefix.
    function _long(
        bytes calldata header,
        uint256 offset,
        uint256 width
    ) private pure returns (uint256 start, uint256 size) {
        start = offset + 1 + width;
        if (start > header.length || header[offset + 1] == 0) revert MalformedHeader(offset);
        size = uint256(bytes32(header[offset + 1:start]) >> (8 * (32 - width)));
        if (size < 56) revert MalformedHeader(offset);
    }
}
