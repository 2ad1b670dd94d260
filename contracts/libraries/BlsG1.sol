// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// BLS signatures in G1 of BLS12-381 (keys in G2), by the precompiles of EIP-2537. Field elements are 64 bytes, big
/// endian, the upper 16 zero; points are x, y; elements of the extension are real part first.
library BlsG1 {
    address private constant MODEXP = address(0x05);
    address private constant G1_ADD = address(0x0b);
    address private constant PAIRING = address(0x0f);
    address private constant MAP_TO_G1 = address(0x10);

    /// The field's prime.
    bytes private constant P =
        hex"000000000000000000000000000000001a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab";
    /// (p - 1) / 2: of y and -y, the larger one is above it.
    uint256 private constant HALF_HIGH = 0x0d0088f51cbff34d258dd3db21a5d66b;
    uint256 private constant HALF_LOW = 0xb23ba5c279c2895fb39869507b587b120f55ffff58a9ffffdcff7fffffffd555;
    /// The generator of G2, negated.
    bytes private constant MINUS_G2 =
        hex"00000000000000000000000000000000024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8"
        hex"0000000000000000000000000000000013e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e"
        hex"000000000000000000000000000000000d1b3cc2c7027888be51d9ef691d77bcb679afda66c73f17f9ee3837a55024f78c71363275a75d75d86bab79f74782aa"
        hex"0000000000000000000000000000000013fa4d4a0ad8b1ce186ed5061789213d993923066dddaf1040bc3ff59f825c78df74f2d75467e25e0f55f8a00fa030ed";

    /// The chain has no such precompile, or it refused what only this library gives it.
    error PrecompileFailed(address precompile);

    /// Whether `x || y` (48 bytes each) signs the message under that key. False, and all of the gas that the pairing
    /// was given is gone, for a point that is not on the curve or not in the subgroup, or a coordinate that is not below
    /// the prime: the precompile checks these. The point at infinity signs nothing, as no message hashes to it.
    function signs(
        bytes calldata signature,
        bytes memory message,
        bytes memory domain,
        bytes memory key
    ) internal view returns (bool) {
        bytes memory hashed = hashToCurve(message, domain);
        bytes memory point = abi.encodePacked(bytes16(0), signature[:48], bytes16(0), signature[48:]);
        // e(signature, -g2) · e(hash, key) = 1
        (bool valid, bytes memory answer) = PAIRING.staticcall(abi.encodePacked(point, MINUS_G2, hashed, key));
        return valid && answer.length == 32 && bytes32(answer) == bytes32(uint256(1));
    }

    /// RFC 9380, suite BLS12381G1_XMD:SHA-256_SSWU_RO_. The precompile clears the cofactor of each point; that is
    /// linear, so the sum is the same. Domains are at most 255 bytes.
    function hashToCurve(bytes memory message, bytes memory domain) internal view returns (bytes memory point) {
        (bytes memory u, bytes memory v) = hashToField(message, domain);
        bytes memory summands = bytes.concat(_call(MAP_TO_G1, u, 128), _call(MAP_TO_G1, v, 128));
        return _call(G1_ADD, summands, 128);
    }

    /// RFC 9380, sections 5.2 and 5.3.1: two field elements from 128 uniform bytes.
    function hashToField(
        bytes memory message,
        bytes memory domain
    ) internal view returns (bytes memory u, bytes memory v) {
        bytes memory suffix = abi.encodePacked(domain, uint8(domain.length));
        bytes32 base = sha256(abi.encodePacked(new bytes(64), message, uint16(128), uint8(0), suffix));
        bytes32 first = sha256(abi.encodePacked(base, uint8(1), suffix));
        bytes32 second = sha256(abi.encodePacked(base ^ first, uint8(2), suffix));
        bytes32 third = sha256(abi.encodePacked(base ^ second, uint8(3), suffix));
        bytes32 fourth = sha256(abi.encodePacked(base ^ third, uint8(4), suffix));
        return (_reduce(first, second), _reduce(third, fourth));
    }

    /// The 48 bytes in which signatures are published: x, and in its three spare bits that it is compressed and which of
    /// the two y belongs to it. For points that `signs` has accepted.
    function compressed(bytes calldata signature) internal pure returns (bytes memory short) {
        uint256 high = uint128(bytes16(signature[48:64]));
        bool larger = high > HALF_HIGH || (high == HALF_HIGH && uint256(bytes32(signature[64:])) > HALF_LOW);
        short = signature[:48];
        short[0] |= larger ? bytes1(0xa0) : bytes1(0x80);
    }

    /// 64 bytes modulo the prime, as a power of one.
    function _reduce(bytes32 high, bytes32 low) private view returns (bytes memory element) {
        return _call(MODEXP, abi.encodePacked(uint256(64), uint256(1), uint256(64), high, low, uint8(1), P), 64);
    }

    function _call(address to, bytes memory input, uint256 size) private view returns (bytes memory answer) {
        bool valid;
        (valid, answer) = to.staticcall(input);
        if (!valid || answer.length != size) revert PrecompileFailed(to);
    }
}
